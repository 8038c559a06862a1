/* table.h: what a table is made of, for the files that read and write tables. */
#ifndef MHA_STORE_TABLE_H
#define MHA_STORE_TABLE_H

#include "store/meta.h"

typedef struct mha_ints {
    size_t n;
    int64_t values[];
} mha_ints;

typedef struct mha_cell {
    bool defined;
    union {
        double real;
        int64_t integer;
        const char *text;
        const mha_ints *ints;
    } as;
} mha_cell;

struct mha_table {
    mha_arena arena; /* names, texts, metadata */
    char *command;
    mha_column *columns; /* [column_count] */
    size_t column_count;
    mha_meta *sections; /* one object a section */
    mha_cell *cells;    /* [rows, column_count] */
    size_t rows, capacity;
};

/* Sections that are always there, in their order; ends with NULL. */
extern const char *const mha_table_sections[];

const mha_cell *mha_table_cell(const mha_table *t, size_t row, size_t column);

/* Order of two defined cells of one type: < 0, 0 or > 0. */
int mha_cell_compare(const mha_cell *a, const mha_cell *b, mha_column_type type);

void mha_table_write_json(const mha_table *t, FILE *f);
void mha_table_write_csv(const mha_table *t, FILE *f);
mha_status mha_table_write_text(const mha_table *t, const mha_text_style *style, FILE *f,
                                mha_err *err);

/* `name` is used in messages. */
mha_status mha_table_read_json(mha_table **out, const char *text, size_t n, const char *name,
                               mha_err *err);
mha_status mha_table_read_csv(mha_table **out, const char *text, size_t n, const char *name,
                              mha_err *err);

#endif
