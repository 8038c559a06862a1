/* open.c: finds out whether a model's tokenizer is in a directory or in a GGUF file. */
#include "text/tokenizer.h"

#include "base/fail.h"
#include "io/checkpoint.h"

#include <sys/stat.h>

static mha_status open_file(mha_tokenizer **out, const char *path, mha_err *err)
{
    mha_checkpoint *c;
    MHA_TRY(mha_checkpoint_open(&c, path, NULL, err));
    mha_status status = MHA_OK;
    if (c->gguf)
        status = mha_tokenizer_open_gguf(out, c->gguf, err);
    if (status != MHA_OK)
        status = mha_fail_prefix(err, status, path);
    mha_checkpoint_close(c);
    return status;
}

mha_status mha_tokenizer_open(mha_tokenizer **out, const char *path, mha_err *err)
{
    struct stat st;
    *out = NULL;
    if (stat(path, &st) == 0 && S_ISREG(st.st_mode))
        return open_file(out, path, err);
    return mha_tokenizer_open_directory(out, path, err);
}
