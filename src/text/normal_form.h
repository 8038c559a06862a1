/* normal_form.h: Unicode normalisation forms with alignment. */
#ifndef MHA_TEXT_NORMAL_FORM_H
#define MHA_TEXT_NORMAL_FORM_H

#include "mha/err.h"
#include "text/aligned.h"
#include <stdbool.h>

/* Appends the NFD, NFKD (compatibility), NFC (compose) or NFKC (both) form of src to dst. A
 * composite has the range of the first character that went into it. */
mha_status mha_normal_form(const mha_aligned *src, mha_aligned *dst, bool compatibility,
                           bool compose, mha_err *err);

#endif
