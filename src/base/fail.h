/* fail.h: filling in an mha_err, and the macros that keep early returns to one line. */
#ifndef MHA_BASE_FAIL_H
#define MHA_BASE_FAIL_H

#include "mha/err.h"

/* Writes the message (printf style, cut to fit, control characters replaced) into *err when err is
 * not NULL, and returns `status`, so that callers can `return mha_fail(...)`. */
mha_status mha_fail(mha_err *err, mha_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4), cold));

/* Puts "PREFIX: " before the message that is already in *err; used by a caller that knows the file
 * name when the callee does not. Returns err->status. */
mha_status mha_fail_prefix(mha_err *err, mha_status status, const char *prefix);

/* Passes an error on: returns from the enclosing function when `call` is not MHA_OK. */
#define MHA_TRY(call)                                                                              \
    do {                                                                                           \
        mha_status mha_try_status_ = (call);                                                       \
        if (mha_try_status_ != MHA_OK)                                                             \
            return mha_try_status_;                                                                \
    } while (0)

/* The same for functions that clean up behind a label: sets `status` and jumps. */
#define MHA_TRY_GOTO(status, call, label)                                                          \
    do {                                                                                           \
        (status) = (call);                                                                         \
        if ((status) != MHA_OK)                                                                    \
            goto label;                                                                            \
    } while (0)

#endif
