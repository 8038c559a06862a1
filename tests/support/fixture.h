/* fixture.h: reference runs of tiny models (tests/data/models): the arrays of one document, in
 * double, and the document itself. Made by tools/make_fixtures.py and tools/make_graph_fixtures.py
 * with implementations that share nothing with ours. */
#ifndef MHA_TEST_FIXTURE_H
#define MHA_TEST_FIXTURE_H

#include "io/npy.h"
#include "mha/input.h"
#include "mha/run.h"

typedef struct fixture_array {
    char *name;
    uint32_t rank;
    uint64_t shape[4];
    double *value;
} fixture_array;

typedef struct fixture {
    fixture_array *array;
    size_t count;
    mha_document doc;
    int32_t *ids, *target_ids;
    uint8_t *types, *global;
    mha_graph graph; /* of a model of graphs, with ends and features of our own */
    uint32_t *ends;
    float *features, *signal;
} fixture;

/* Where the fixtures lie: the environment's MHA_ROOT (or the current directory) +
 * /tests/data/models. */
void fixture_path(char *out, size_t cap, const char *model, const char *file);
/* The model whose expected arrays `model` must reproduce, by tests/data/models/same.tsv; itself
 * when it is not listed there. */
void fixture_expected_of(const char *model, char *out, size_t cap);

enum { FIXTURE_MODELS_MAX = 512, FIXTURE_NAME_MAX = 64 };
typedef struct fixture_models {
    char name[FIXTURE_MODELS_MAX][FIXTURE_NAME_MAX];
    size_t count;
} fixture_models;
/* Every model that has expected arrays or must reproduce those of another, by name. */
void fixture_models_find(fixture_models *out);
/* Those whose own gradient.1.npz holds gradients of sites and weights too. */
void fixture_detailed_find(fixture_models *out);
/* Loads MODEL/expected.N.npz; false when there is no such file. Fails the test on anything else. */
bool fixture_open(fixture *f, const char *model, int n);
/* The arrays of MODEL/gradient.N.npz (tools/make_gradient_fixtures.py); no document. */
bool fixture_gradient_open(fixture *f, const char *model, int n);
/* The same of generate.N.npz: what the reference writes. */
bool fixture_generate_open(fixture *f, const char *model, int n);
/* The same of contacts.N.npz (tools/make_contact_fixtures.py). */
bool fixture_contacts_open(fixture *f, const char *model, int n);
void fixture_close(fixture *f);
const fixture_array *fixture_find(const fixture *f, const char *name);
/* The array that a block is part of, as in the command-line contract: "enc.self.0.pattern". */
void fixture_array_name(const mha_block *b, char *out, size_t cap);

/* Terms of the loss and gates of gradient.N.npz put into the document; term [cap] and gates [A, H]
 * must outlive it. */
void fixture_set_terms(mha_document *doc, const fixture *g, mha_prediction *term, size_t cap,
                       float *gates);

/* A probe that compares every block it is given with the fixture. */
typedef struct fixture_check {
    const fixture *f;
    const mha_model *model;
    double error[MHA_SITE_COUNT]; /* largest |ours − reference|; scores, hidden, logits: over 1 +
                                     |reference| */
    size_t blocks, missing;
    char first_missing[64];
} fixture_check;
mha_probe fixture_probe(fixture_check *c);

#endif
