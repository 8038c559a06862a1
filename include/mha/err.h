/* mha/err.h: how every call of the library reports what went wrong.
 *
 * Every fallible function returns an mha_status and takes the caller's own `mha_err *` last.
 * `err` may be NULL when only the status matters. The library never prints and never exits.
 * On success *err is left as it was. */
#ifndef MHA_ERR_H
#define MHA_ERR_H

#ifdef __cplusplus
extern "C" {
#endif

typedef enum mha_status {
    MHA_OK = 0,
    MHA_ERR_ARG,         /* the caller's arguments make no sense together */
    MHA_ERR_NOMEM,       /* an allocation failed, or the plan is over the memory limit */
    MHA_ERR_IO,          /* the operating system said no: open, read, write, rename */
    MHA_ERR_FORMAT,      /* a file is broken, cut short, or contradicts itself */
    MHA_ERR_UNSUPPORTED, /* well-formed, but something this library does not do */
    MHA_ERR_LIMIT,       /* over a settable limit, or over what the model can take */
    MHA_ERR_NUMERIC,     /* NaN or infinity in weights or activations */
    MHA_ERR_CANCELLED,   /* the caller's callback asked to stop */
    MHA_ERR_INTERNAL,    /* a bug in this library */
} mha_status;

#define MHA_ERR_MESSAGE 512

/* The caller's own error record. `message` is one line without a newline: it names the file, the
 * tensor or the key, what was expected and what was found. */
typedef struct mha_err {
    mha_status status;
    char message[MHA_ERR_MESSAGE];
} mha_err;

/* A short fixed name of the status, e.g. "format". Never NULL. */
const char *mha_status_name(mha_status status);

#ifdef __cplusplus
}
#endif
#endif
