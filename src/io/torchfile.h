/* torchfile.h: the tensors of a file that torch.save wrote (pytorch_model.bin, model.pt).
 *
 * Two forms: a zip archive with ROOT/data.pkl and one entry ROOT/data/KEY for each storage
 * (PyTorch 1.6 and later), or five pickles in a row and the storages behind them. Nothing in the
 * file is executed (pickle.h). */
#ifndef MHA_IO_TORCHFILE_H
#define MHA_IO_TORCHFILE_H

#include "io/tensor.h"

/* Appends the tensors of data[0..size) to `list`: those of the dictionary at the top, or of the one
 * under "state_dict", "model", "model_state_dict", "module", "net", "params" or "ema" in it. Other
 * values are passed over. Tensors are views into the given memory, but those whose elements do not
 * lie in row-major order are gathered into list->names. Several may share their elements.
 * MHA_ERR_FORMAT: broken; MHA_ERR_UNSUPPORTED: names or types that are not taken, TorchScript
 * archives, tar files; MHA_ERR_LIMIT: more than max_tensors. */
mha_status mha_torchfile_parse(mha_tensor_list *list, const unsigned char *data, size_t size,
                               const char *file, uint32_t file_index, uint64_t max_tensors,
                               mha_err *err);

#endif
