/* safetensors.h: one safetensors file in memory, checked strictly.
 *
 * Layout: u64 N little-endian | N bytes of JSON | data. The JSON maps each tensor name to
 * {"dtype", "shape", "data_offsets": [begin, end]}, offsets counted from the data's start;
 * "__metadata__" maps strings to strings. The tensors must cover the data without gap or overlap:
 * a gap can hide a second file. */
#ifndef MHA_IO_SAFETENSORS_H
#define MHA_IO_SAFETENSORS_H

#include "io/tensor.h"

#define MHA_SAFETENSORS_HEADER_MAX  ((uint64_t)100000000)
#define MHA_SAFETENSORS_TENSORS_MAX ((uint64_t)1000000)

/* Appends the tensors of data[0..size) to `list` in the order of the header, `data` pointers into
 * the given memory, `file` numbers set to file_index. `file` is used in messages. Names are exposed
 * as they are in the file. On failure the list may have grown but its count is as before. */
mha_status mha_safetensors_parse(mha_tensor_list *list, const unsigned char *data, size_t size,
                                 const char *file, uint32_t file_index, uint64_t max_header,
                                 uint64_t max_tensors, mha_err *err);

#endif
