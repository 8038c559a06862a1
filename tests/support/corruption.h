/* corruption.h: tables of broken files: what is wrong, the file as a recipe of bytes.h, and what
 * the reader must answer. */
#ifndef MHA_TESTS_SUPPORT_CORRUPTION_H
#define MHA_TESTS_SUPPORT_CORRUPTION_H

#include "mha/err.h"
#include <stddef.h>

typedef struct corruption {
    const char *name;   /* what is wrong with the file */
    const char *recipe; /* the file */
    mha_status status;  /* MHA_OK: it looks odd but is legal */
    const char *says;   /* a part of the message */
} corruption;

/* Reads the file, releases what it got, returns the status. */
typedef mha_status (*corruption_reader)(const unsigned char *data, size_t n, mha_err *err);

/* Runs all rows and fails naming the first that got another answer; every message must name the
 * file, which the reader calls `file`, and be one line. */
void corruption_run(const corruption *rows, size_t n, corruption_reader read, const char *file);

/* Reads every prefix of the good file, and every copy of it with one byte changed to 0x00, 0x7f,
 * 0x80, 0xff: no crash, and no prefix is accepted. */
void corruption_sweep(const char *recipe, corruption_reader read);

#endif
