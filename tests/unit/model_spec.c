/* model_spec: family descriptions as text: what is read, and that every mistake is reported with
 * its line and its name. */
#include "support/test.h"

#include "base/buf.h"
#include "model/families.h"
#include "model/ops.h"
#include "model/spec.h"

#include <string.h>

static const char good[] =
    "family tiny   # a comment\n"
    "types  tiny tiny-2\n"
    "types  tiny-3\n"
    "prefix tiny.\n"
    "alias  .weight .gamma\n"
    "ignore *.ids\n"
    "config\n"
    "  D  width | hidden | gguf embedding_length\n"
    "  L  layers default 2   # 'quoted # stays'\n"
    "  s  style default 'a#b'\n"
    "  F = 4 * D\n"
    "  odd[l] = l % 2\n"
    "require D % 2 == 0\n"
    "tensors\n"
    "  matrix tok [8, D] tok.weight\n"
    "stack dec layers=L\n"
    "  tensors\n"
    "    norm   n    [D]    h.{l}.norm bias=0 plus-one\n"
    "    linear up   [F, D] h.{l}.up | g.{l}.up | gguf blk.{l}.up in-out \\\n"
    "                       from=2*F at=F\n"
    "    linear down [D, F] h.{l}.down optional else=up\n"
    "  prologue\n"
    "    X <- embed token table=tok scale=D^0.5\n"
    "  block\n"
    "    B <- rms X w=n eps=1e-6 when odd\n"
    "    B <- mlp X up=up down=down act=gelu\n"
    "    X <- add B\n"
    "head next when arch ~ '*LM'\n"
    "  steps\n"
    "    logits X w=tok\n";

static void test_good(void **state)
{
    mha_spec *s = NULL;
    mha_err err = {0};
    if (mha_spec_parse(&s, good, sizeof good - 1, "tiny.family", &err) != MHA_OK)
        fail_msg("%s", err.message);
    assert_string_equal(s->name, "tiny");
    assert_int_equal(s->types.count, 3);
    assert_string_equal(s->types.word[2], "tiny-3");
    assert_int_equal(s->var_count, 5);
    assert_int_equal(s->vars[0].keys.count, 2);
    assert_string_equal(s->vars[0].keys.word[1], "hidden");
    assert_string_equal(s->vars[0].gguf.word[0], "embedding_length");
    assert_null(s->vars[0].value);
    assert_string_equal(mha_expr_text(s->vars[2].value), "'a#b'");
    assert_true(s->vars[3].computed && s->vars[4].per_layer);
    assert_int_equal(s->slot_count, 4);
    assert_string_equal(s->slots[2].name, "up");
    assert_int_equal(s->slots[2].kind, MHA_SLOT_LINEAR);
    assert_string_equal(s->slots[2].names.word[1], "g.{l}.up");
    assert_true(s->slots[2].per_layer && s->slots[2].in_out != NULL);
    assert_string_equal(mha_expr_text(s->slots[2].from), "2*F");
    assert_int_equal(s->slots[2].line, 20); /* the last line of it */
    assert_string_equal(s->slots[3].tied, "up");
    assert_int_equal(s->stack_count, 1);
    assert_int_equal(s->stacks[0].block.count, 3);
    const mha_spec_step *step = &s->stacks[0].block.step[1];
    assert_int_equal(step->op->op, MHA_OP_MLP);
    assert_int_equal(step->dst, MHA_B);
    assert_int_equal(step->args, 3);
    assert_string_equal(step->arg[2].word, "gelu");
    assert_non_null(s->stacks[0].block.step[0].when);
    assert_int_equal(s->heads[0].kind, MHA_HEAD_NEXT);
    mha_spec_free(s);
}

/* One line of the good description replaced: the message must name that line and the culprit. */
static void test_mistakes(void **state)
{
    static const struct {
        size_t line;
        const char *text, *message;
    } cases[] = {
        {1, "famly tiny", "\"famly\" is not known here"},
        {1, "family", "expected the family's name"},
        {1, "family a b", "\"b\" is not expected here"},
        {2, "types", "expected a model_type"},
        {5, "alias .weight", "alias needs two words"},
        {8, "D", "expected a config key"},
        {8, "D width |", "expected a config key"},
        {8, "D width defalt 3", "expected \"default\" or \"null\", not \"defalt\""},
        {8, "D width default", "the line ends"},
        {8, "9D width", "the name \"9D\" is taken"},
        {8, "D+1 width", "\"D+1\" is not a name"},
        {9, "D layers", "the name \"D\" is taken"},
        {9, "gguf layers", "\"gguf\" belongs before the config section"},
        {11, "F = 4 * E", "\"E\" is not declared above"},
        {11, "F = F", "\"F\" is not declared above"},
        {11, "F = size(D)", "size()"},
        {11, "F = min(D)", "min()"},
        {11, "F = has(D)", "has()"},
        {11, "F = 4 * D 3", "\"3\" is not expected here"},
        {12, "odd[l] width", "expected odd[l] = "},
        {13, "require D % == 0", "expected a value"},
        {15, "matrx tok [8, D] tok.weight", "\"matrx\" is no kind of slot"},
        {15, "linear tok [8] tok", "2 dims, not 1"},
        {15, "matrix tok [8, D, 2, 2, 2] tok.weight", "more than 4 dims"},
        {15, "table tok [8, D, 2] tok.weight", "more than 2 dims"},
        {15, "vector tok [8] t sinusoid", "\"sinusoid\" is not an option of this kind"},
        {15, "matrix tok [8, D tok.weight", "expected \"]\""},
        {15, "matrix tok 8 tok.weight", "expected a shape"},
        {15, "matrix tok [8, D]", "expected a tensor name"},
        {15, "matrix tok [8, D] t bias=0", "\"bias\" is not an option of this kind"},
        {15, "matrix tok [8, D] t when", "\"when\" is not an option"},
        {15, "matrix tok [8, D] t.{l}", "{l} outside of a stack"},
        {18, "norm no [D] h.{g}.norm", "{g} names no value"},
        {18, "norm no [D] h.{l.norm", "names no value"},
        {18, "norm no [D] h.{}.norm", "{} names no value"},
        {16, "stack mid layers=L", "enc, dec or graph"},
        {16, "stack dec layer=L", "expected layers="},
        {18, "norm tok [D] h.{l}.norm", "\"tok\" is declared already in line 15"},
        {21, "linear down [D, F] h.{l}.down else=tok", "\"tok\" is of another kind"},
        {21, "linear down [D, F] h.{l}.down else=xx", "\"xx\""},
        {22, "begin", "\"begin\" is no kind of slot"},
        {23, "Y <- embed token table=tok", "\"Y\" is not a register"},
        {23, "E <- embed token table=tok", "E is the encoder's memory"},
        {23, "embed token table=tok", "needs a register to write"},
        {23, "X <- embed patch table=tok", "embed does not know \"patch\""},
        {23, "X <- embed token table=up", "table: slot \"up\" is not a matrix"},
        {23, "X <- embed token", "embed needs table="},
        {25, "B <- convolve X", "there is no op \"convolve\""},
        {25, "B <- rms X w=n", "rms needs eps="},
        {25, "B <- rms X w=n eps=1 eps=2", "eps is given twice"},
        {25, "B <- rms X w=up eps=1", "slot \"up\" is not a norm"},
        {25, "B <- rms X w=nn eps=1", "no tensor slot is called \"nn\""},
        {25, "B <- rms X w eps=1", "w needs a value"},
        {25, "B <- rms w=n eps=1", "\"w\" is not a register"},
        {26, "B <- mlp X up=up down=down act=gleu", "\"gleu\" is not declared above"},
        {26, "B <- mlp X up=up down=down act=gelu gain=2", "mlp has no argument \"gain\""},
        {27, "X <- add B C", "add has no argument \"C\""},
        {28, "head prev", "\"prev\""},
        {28, "head next if 1", "expected \"when\", not \"if\""},
        {29, "block", "\"block\" belongs into a stack"},
        {30, "X <- logits X w=tok", "writes no register"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mha_buf text;
        mha_buf_init(&text, 1 << 16);
        const char *at = good;
        size_t reported = cases[i].line;
        for (size_t line = 1; *at != '\0'; line++) {
            size_t n = strcspn(at, "\n") + 1;
            if (line == cases[i].line)
                mha_buf_addf(&text, NULL, "%s\n", cases[i].text);
            else
                mha_buf_add(&text, at, n, NULL);
            at += n;
        }
        mha_spec *s = NULL;
        mha_err err = {0};
        char where[32];
        snprintf(where, sizeof where, "t.family:%zu: ", reported);
        mha_status status = mha_spec_parse(&s, text.data, text.size, "t.family", &err);
        mha_buf_release(&text);
        if (status != MHA_ERR_FORMAT || strncmp(err.message, where, strlen(where)) != 0 ||
            strstr(err.message, cases[i].message) == NULL)
            fail_msg("line %zu \"%s\": %s \"%s\"", cases[i].line, cases[i].text,
                     mha_status_name(status), err.message);
    }
}

static void refuses(const char *text, size_t size, mha_status status, const char *message)
{
    mha_spec *s = NULL;
    mha_err err = {0};
    assert_int_equal(mha_spec_parse(&s, text, size, "t", &err), status);
    if (strstr(err.message, message) == NULL)
        fail_msg("\"%s\" in \"%s\"", message, err.message);
}

static void test_whole(void **state)
{
    static char large[(1 << 17) + 1];
    memset(large, '\n', sizeof large);
    refuses("", 0, MHA_ERR_FORMAT, "lacks family NAME");
    refuses("family x", 8, MHA_ERR_FORMAT, "lacks types or gguf");
    refuses("family x\ntypes x", 16, MHA_ERR_FORMAT, "lacks a stack");
    refuses("family x\ntypes x\nstack enc layers=1", 35, MHA_ERR_FORMAT, "t:3: the stack lacks");
    refuses("fam\0ily", 7, MHA_ERR_FORMAT, "t:1: a NUL byte");
    refuses(large, sizeof large, MHA_ERR_LIMIT, "at most");
    refuses(large, sizeof large - 1, MHA_ERR_FORMAT, "lacks family NAME");
}

static void test_embedded(void **state)
{
    assert_true(mha_family_count >= 9);
    for (size_t i = 0; i < mha_family_count; i++) {
        mha_spec *s = NULL;
        mha_err err = {0};
        if (mha_spec_parse(&s, mha_families[i].text, mha_families[i].size, mha_families[i].name,
                           &err) != MHA_OK)
            fail_msg("%s", err.message);
        assert_string_equal(s->name, mha_families[i].name);
        mha_spec_free(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_whole),
        cmocka_unit_test(test_embedded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
