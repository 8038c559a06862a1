/* variants.c: losses of documents under many sets of gates. */
#include "analysis/units.h"
#include "base/fail.h"
#include "base/mem.h"

/* Variants handed to the engine at once: bounds the list of documents, not the work. */
#define PIECE 1024

mha_status mha_variants_loss(mha_engine *e, const mha_document *docs, const mha_variant *variants,
                             size_t count, double *loss, size_t *hits, mha_share *share,
                             mha_err *err)
{
    mha_document *piece;
    size_t most = count < PIECE ? count : PIECE;
    mha_share inner = *share;
    mha_status st = MHA_OK;
    MHA_TRY(mha_alloc((void **)&piece, most, sizeof *piece, err));
    for (size_t first = 0, n; first < count && st == MHA_OK; first += n) {
        n = count - first < PIECE ? count - first : PIECE;
        for (size_t i = 0; i < n; i++) {
            piece[i] = docs[variants[first + i].document];
            piece[i].gates = variants[first + i].gates;
        }
        inner.before = share->before + share->part * (double)first / (double)count;
        inner.part = share->part * (double)n / (double)count;
        st = mha_engine_loss(e, piece, n, loss + first, hits != NULL ? hits + first : NULL,
                             mha_share_step, &inner, err);
    }
    mha_free(piece);
    return st;
}
