/* safetensors_write.h: the header of a safetensors file. The tensors' bytes follow it in the order
 * in which they were declared, without anything between them, in as many pieces as is convenient.
 */
#ifndef MHA_IO_SAFETENSORS_WRITE_H
#define MHA_IO_SAFETENSORS_WRITE_H

#include "base/outfile.h"
#include "io/tensor.h"

/* Of each tensor name, type, rank and shape are used; block types have no place in the format
 * (MHA_ERR_ARG). `format` is the metadata "format" ("pt" for models that Transformers shall read);
 * NULL: no metadata. The header is padded so that the data begin at a multiple of 8. */
mha_status mha_safetensors_write_header(mha_outfile *f, const mha_tensor *tensors, size_t n,
                                        const char *format, mha_err *err);

#endif
