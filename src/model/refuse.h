/* refuse.h: config keys that change the mathematics: whoever does not read them may not ignore
 * them either. */
#ifndef MHA_MODEL_REFUSE_H
#define MHA_MODEL_REFUSE_H

#include "model/binder.h"

/* MHA_ERR_UNSUPPORTED, naming the first key of the table that is present with a value other than
 * its neutral one and that the description does not read. */
mha_status mha_refuse_unread(const mha_binder *b);

#endif
