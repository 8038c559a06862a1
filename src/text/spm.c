/* spm.c: a bounded reader of the protocol buffers of SentencePiece models. It may not decide what
 * the pieces are used for. */
#include "text/spm.h"

#include "base/fail.h"
#include "base/utf8.h"
#include "io/cursor.h"
#include "text/vocab.h"

#include <math.h>
#include <string.h>

enum wire_type { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

/* One field of a message: what its wire type says is set. */
typedef struct field {
    uint64_t number, value; /* WIRE_VARINT, WIRE_32 */
    enum wire_type type;
    mha_cursor bytes; /* WIRE_BYTES: over the field alone */
} field;

static mha_status read_varint(mha_cursor *c, uint64_t *out, mha_err *err)
{
    uint8_t byte = 0x80;
    *out = 0;
    for (unsigned shift = 0; byte & 0x80; shift += 7) {
        if (shift > 63)
            return mha_fail(err, MHA_ERR_FORMAT, "%s: at byte %zu: a number is too long", c->file,
                            c->at);
        MHA_TRY(mha_cursor_u8(c, &byte, "a number", err));
        *out |= (uint64_t)(byte & 0x7f) << shift;
    }
    return MHA_OK;
}

static mha_status read_bytes(mha_cursor *c, mha_cursor *out, mha_err *err)
{
    uint64_t n;
    const unsigned char *data;
    MHA_TRY(read_varint(c, &n, err));
    MHA_TRY(mha_cursor_bytes(c, &data, n, "a field", err));
    *out = (mha_cursor){.data = data, .size = (size_t)n, .file = c->file};
    return MHA_OK;
}

static mha_status read_field(mha_cursor *c, field *f, mha_err *err)
{
    size_t at = c->at;
    uint64_t key;
    uint32_t word = 0;
    *f = (field){0};
    MHA_TRY(read_varint(c, &key, err));
    f->number = key >> 3;
    f->type = (enum wire_type)(key & 7);
    if (f->number == 0)
        return mha_fail(err, MHA_ERR_FORMAT, "%s: at byte %zu: a field has the number 0", c->file,
                        at);
    switch (f->type) {
    case WIRE_VARINT:
        return read_varint(c, &f->value, err);
    case WIRE_64:
        return mha_cursor_u64(c, &f->value, "a field", err);
    case WIRE_BYTES:
        return read_bytes(c, &f->bytes, err);
    case WIRE_32:
        MHA_TRY(mha_cursor_u32(c, &word, "a field", err));
        f->value = word;
        return MHA_OK;
    }
    return mha_fail(err, MHA_ERR_FORMAT, "%s: at byte %zu: no field starts here (wire type %u)",
                    c->file, at, (unsigned)(key & 7));
}

static mha_status expect(const mha_cursor *c, const field *f, enum wire_type type, const char *what,
                         mha_err *err)
{
    if (f->type == type)
        return MHA_OK;
    return mha_fail(err, MHA_ERR_FORMAT, "%s: %s: expected wire type %u, found %u", c->file, what,
                    (unsigned)type, (unsigned)f->type);
}

/* Calls `read` for every field of a message. */
typedef mha_status (*field_reader)(mha_spm *m, mha_cursor *c, const field *f, mha_err *err);

static mha_status read_message(mha_spm *m, mha_cursor c, field_reader read, mha_err *err)
{
    while (mha_cursor_left(&c) > 0) {
        field f;
        MHA_TRY(read_field(&c, &f, err));
        MHA_TRY(read(m, &c, &f, err));
    }
    return MHA_OK;
}

static mha_status read_bool(const mha_cursor *c, const field *f, bool *out, const char *what,
                            mha_err *err)
{
    MHA_TRY(expect(c, f, WIRE_VARINT, what, err));
    *out = f->value != 0;
    return MHA_OK;
}

/* --- pieces ---------------------------------------------------------------------------------- */

static mha_status read_piece_field(mha_spm *m, mha_cursor *c, const field *f, mha_err *err)
{
    mha_scored_piece *p = &m->pieces[m->n - 1];
    float score;
    uint32_t bits;
    switch (f->number) {
    case 1:
        MHA_TRY(expect(c, f, WIRE_BYTES, "piece", err));
        p->s = (const char *)f->bytes.data;
        p->n = f->bytes.size;
        return MHA_OK;
    case 2:
        MHA_TRY(expect(c, f, WIRE_32, "score", err));
        bits = (uint32_t)f->value;
        memcpy(&score, &bits, sizeof score);
        p->score = (double)score;
        return MHA_OK;
    case 3:
        MHA_TRY(expect(c, f, WIRE_VARINT, "type", err));
        if (f->value < MHA_PIECE_NORMAL || f->value > MHA_PIECE_BYTE)
            return mha_fail(err, MHA_ERR_FORMAT, "%s: piece %zu: %llu is no type", c->file,
                            m->n - 1, (unsigned long long)f->value);
        p->type = (mha_piece_type)f->value;
        return MHA_OK;
    default:
        return MHA_OK;
    }
}

static mha_status check_piece(const mha_scored_piece *p, const char *file, mha_err *err)
{
    if (!p->s || p->n == 0)
        return mha_fail(err, MHA_ERR_FORMAT, "%s: piece %d is empty", file, p->id);
    if (!mha_utf8_valid(p->s, p->n) || memchr(p->s, '\0', p->n))
        return mha_fail(err, MHA_ERR_FORMAT, "%s: piece %d is no text", file, p->id);
    if (!isfinite(p->score))
        return mha_fail(err, MHA_ERR_FORMAT, "%s: piece %d: the score is not finite", file, p->id);
    if (p->type == MHA_PIECE_BYTE && mha_byte_of_piece(p->s, p->n) < 0)
        return mha_fail(err, MHA_ERR_FORMAT, "%s: piece %d: \"%.*s\" names no byte", file, p->id,
                        (int)(p->n < 40 ? p->n : 40), p->s);
    return MHA_OK;
}

static mha_status read_piece(mha_spm *m, const field *f, mha_err *err)
{
    m->pieces[m->n] = (mha_scored_piece){.type = MHA_PIECE_NORMAL, .id = (int32_t)m->n};
    m->n++;
    MHA_TRY(read_message(m, f->bytes, read_piece_field, err));
    return check_piece(&m->pieces[m->n - 1], f->bytes.file, err);
}

/* --- settings -------------------------------------------------------------------------------- */

static mha_status read_id(const mha_cursor *c, const field *f, int32_t *out, const char *what,
                          mha_err *err)
{
    MHA_TRY(expect(c, f, WIRE_VARINT, what, err));
    int64_t v = (int64_t)f->value;
    if (v < -1 || v >= MHA_VOCAB_IDS_MAX)
        return mha_fail(err, MHA_ERR_FORMAT, "%s: %s is %lld", c->file, what, (long long)v);
    *out = (int32_t)v;
    return MHA_OK;
}

static mha_status read_type(mha_spm *m, const mha_cursor *c, const field *f, mha_err *err)
{
    static const char *const names[] = {"?", "Unigram", "BPE", "words", "characters"};
    MHA_TRY(expect(c, f, WIRE_VARINT, "model_type", err));
    if (f->value != 1 && f->value != 2)
        return mha_fail(err, MHA_ERR_UNSUPPORTED, "%s: a model of type %llu (%s) is not supported",
                        c->file, (unsigned long long)f->value, names[f->value < 5 ? f->value : 0]);
    m->bpe = f->value == 2;
    return MHA_OK;
}

static mha_status read_trainer(mha_spm *m, mha_cursor *c, const field *f, mha_err *err)
{
    bool suffix = false;
    switch (f->number) {
    case 3:
        return read_type(m, c, f, err);
    case 24:
        MHA_TRY(read_bool(c, f, &suffix, "treat_whitespace_as_suffix", err));
        if (suffix)
            return mha_fail(err, MHA_ERR_UNSUPPORTED,
                            "%s: treat_whitespace_as_suffix is not supported", c->file);
        return MHA_OK;
    case 35:
        return read_bool(c, f, &m->byte_fallback, "byte_fallback", err);
    case 40:
        return read_id(c, f, &m->unknown, "unk_id", err);
    case 41:
        return read_id(c, f, &m->bos, "bos_id", err);
    case 42:
        return read_id(c, f, &m->eos, "eos_id", err);
    case 43:
        return read_id(c, f, &m->pad, "pad_id", err);
    default:
        return MHA_OK;
    }
}

static mha_status read_normalizer(mha_spm *m, mha_cursor *c, const field *f, mha_err *err)
{
    bool escape = true;
    switch (f->number) {
    case 2:
        MHA_TRY(expect(c, f, WIRE_BYTES, "precompiled_charsmap", err));
        m->charsmap = f->bytes.size > 0 ? f->bytes.data : NULL;
        m->charsmap_n = f->bytes.size;
        return MHA_OK;
    case 3:
        return read_bool(c, f, &m->dummy_prefix, "add_dummy_prefix", err);
    case 4:
        return read_bool(c, f, &m->remove_extra_spaces, "remove_extra_whitespaces", err);
    case 5:
        MHA_TRY(read_bool(c, f, &escape, "escape_whitespaces", err));
        if (!escape)
            return mha_fail(err, MHA_ERR_UNSUPPORTED,
                            "%s: a model without escape_whitespaces is not supported", c->file);
        return MHA_OK;
    default:
        return MHA_OK;
    }
}

/* --- the file -------------------------------------------------------------------------------- */

static mha_status read_model_field(mha_spm *m, mha_cursor *c, const field *f, mha_err *err)
{
    if (f->number < 1 || f->number > 3)
        return MHA_OK;
    MHA_TRY(expect(c, f, WIRE_BYTES, "a part of the model", err));
    if (f->number == 1)
        return read_piece(m, f, err);
    return read_message(m, f->bytes, f->number == 2 ? read_trainer : read_normalizer, err);
}

static mha_status count_piece(mha_spm *m, mha_cursor *c, const field *f, mha_err *err)
{
    m->n += f->number == 1;
    if (m->n > (size_t)MHA_VOCAB_IDS_MAX)
        return mha_fail(err, MHA_ERR_LIMIT, "%s: more than %lld pieces", c->file,
                        (long long)MHA_VOCAB_IDS_MAX);
    return MHA_OK;
}

/* Ids in the trainer's settings are often left at defaults that the pieces do not have. */
static mha_status check_ids(mha_spm *m, const char *file, mha_err *err)
{
    if ((size_t)m->bos >= m->n)
        m->bos = -1;
    if ((size_t)m->eos >= m->n)
        m->eos = -1;
    if ((size_t)m->pad >= m->n)
        m->pad = -1;
    for (size_t i = 0; i < m->n; i++) {
        if (m->pieces[i].type == MHA_PIECE_UNKNOWN)
            m->unknown = (int32_t)i;
    }
    if (m->unknown < 0 || (size_t)m->unknown >= m->n)
        return mha_fail(err, MHA_ERR_FORMAT, "%s: there is no piece for the unknown", file);
    return MHA_OK;
}

static mha_status read_all(mha_spm *m, mha_cursor c, mha_err *err)
{
    void *p;
    MHA_TRY(read_message(m, c, count_piece, err));
    if (m->n == 0)
        return mha_fail(err, MHA_ERR_FORMAT, "%s: no SentencePiece model: there are no pieces",
                        c.file);
    MHA_TRY(mha_alloc(&p, m->n, sizeof *m->pieces, err));
    m->pieces = p;
    m->n = 0;
    MHA_TRY(read_message(m, c, read_model_field, err));
    return check_ids(m, c.file, err);
}

mha_status mha_spm_read(mha_spm *out, const unsigned char *data, size_t size, const char *file,
                        mha_err *err)
{
    mha_cursor c = {.data = data, .size = size, .file = file};
    *out =
        (mha_spm){.bos = 1, .eos = 2, .pad = -1, .dummy_prefix = true, .remove_extra_spaces = true};
    mha_status status = read_all(out, c, err);
    if (status != MHA_OK)
        mha_spm_release(out);
    return status;
}

void mha_spm_release(mha_spm *m)
{
    mha_free(m->pieces);
    *m = (mha_spm){0};
}
