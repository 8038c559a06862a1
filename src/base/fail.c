/* fail.c: filling in an mha_err. Messages hold pieces of hostile files, so nothing that could steer
 * a terminal leaves this file: every byte that is not printable UTF-8 becomes '?'. It may not
 * allocate, since it also reports that memory is out. */
#include "base/fail.h"

#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *mha_status_name(mha_status status)
{
    switch (status) {
    case MHA_OK:
        return "ok";
    case MHA_ERR_ARG:
        return "arg";
    case MHA_ERR_NOMEM:
        return "nomem";
    case MHA_ERR_IO:
        return "io";
    case MHA_ERR_FORMAT:
        return "format";
    case MHA_ERR_UNSUPPORTED:
        return "unsupported";
    case MHA_ERR_LIMIT:
        return "limit";
    case MHA_ERR_NUMERIC:
        return "numeric";
    case MHA_ERR_CANCELLED:
        return "cancelled";
    case MHA_ERR_INTERNAL:
        return "internal";
    }
    return "unknown";
}

/* Replaces in place what is not printable; the length does not change. */
static void message_clean(char *s)
{
    size_t n = strlen(s);
    for (size_t i = 0; i < n;) {
        uint32_t cp = 0;
        size_t len = mha_utf8_decode(s + i, n - i, &cp);
        bool bad = len == 0 || cp < 0x20 || (cp >= 0x7f && cp < 0xa0);
        if (len == 0)
            len = 1;
        if (bad)
            memset(s + i, '?', len);
        i += len;
    }
}

mha_status mha_fail(mha_err *err, mha_status status, const char *format, ...)
{
    if (!err)
        return status;
    /* Not straight into err->message: an argument may point there. */
    char text[MHA_ERR_MESSAGE];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (n < 0)
        text[0] = '\0';
    else if ((size_t)n >= sizeof text)
        memcpy(text + sizeof text - 4, "...", 4);
    message_clean(text);
    err->status = status;
    memcpy(err->message, text, sizeof text);
    return status;
}

mha_status mha_fail_prefix(mha_err *err, mha_status status, const char *prefix)
{
    if (!err)
        return status;
    return mha_fail(err, status, "%s: %s", prefix, err->message);
}
