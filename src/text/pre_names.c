/* pre_names.c: the table of named pre-tokenizers. Patterns are those of the tokenizer.json files of
 * the models that the names stand for. It may not compile them: the description is read by the same
 * code that reads a tokenizer.json. */
#include "text/pre_names.h"

#include "base/fail.h"

#include <stdio.h>
#include <string.h>

#define CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define SPACES       "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

/* What ByteLevel splits by itself. */
#define GPT2_WORDS                                                                                 \
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"

/* The words of Llama 3; Qwen 2 takes digits one by one. */
#define LLAMA3_WORDS(digits)                                                                       \
    CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" digits "| "                                     \
                 "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" SPACES

/* Words that start with capitals and go on in small letters, or the other way round. */
#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define CASED_WORDS(contractions, digits)                                                          \
    "[^\\r\\n\\p{L}\\p{N}]?" UPPER "*" LOWER "+" contractions "|[^\\r\\n\\p{L}\\p{N}]?" UPPER      \
    "+" LOWER "*" contractions "|" digits "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" SPACES

#define BLOOM_WORDS  " ?[^(\\s|.,!?…。，、।۔،)]+"
#define DEEPSEEK_HAN "[一-龥ࠀ-一가-퟿]+"
#define DEEPSEEK3_WORDS                                                                            \
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|"                                       \
    "[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*|" SPACES
/* The letters of scripts with upper and lower case. */
#define CASED_LETTERS                                                                              \
    "\\x{41}-\\x{5a}\\x{61}-\\x{7a}\\x{b5}\\x{c0}-\\x{d6}\\x{d8}-\\x{f6}"                          \
    "\\x{f8}-\\x{1ba}\\x{1bc}-\\x{1bf}\\x{1c4}-\\x{293}\\x{295}-\\x{2af}"                          \
    "\\x{370}-\\x{373}\\x{376}\\x{377}\\x{37b}-\\x{37d}\\x{37f}\\x{386}"                           \
    "\\x{388}-\\x{38a}\\x{38c}\\x{38e}-\\x{3a1}\\x{3a3}-\\x{3f5}\\x{3f7}-\\x{481}"                 \
    "\\x{48a}-\\x{52f}\\x{531}-\\x{556}\\x{10a0}-\\x{10c5}\\x{13a0}-\\x{13f5}"                     \
    "\\x{13f8}-\\x{13fd}\\x{1c90}-\\x{1cba}\\x{1cbd}-\\x{1cbf}\\x{1d00}-\\x{1d2b}"                 \
    "\\x{1d6b}-\\x{1d77}\\x{1d79}-\\x{1d9a}\\x{1e00}-\\x{1f15}\\x{1f18}-\\x{1f1d}"                 \
    "\\x{1f20}-\\x{1f45}\\x{1f48}-\\x{1f4d}\\x{1f50}-\\x{1f57}\\x{1f59}\\x{1f5b}"                  \
    "\\x{1f5d}\\x{1f5f}-\\x{1f7d}\\x{1f80}-\\x{1fb4}\\x{1fb6}-\\x{1fbc}\\x{1fbe}"                  \
    "\\x{1fc2}-\\x{1fc4}\\x{1fc6}-\\x{1fcc}\\x{1fd0}-\\x{1fd3}\\x{1fd6}-\\x{1fdb}"                 \
    "\\x{1fe0}-\\x{1fec}\\x{1ff2}-\\x{1ff4}\\x{1ff6}-\\x{1ffc}\\x{2102}\\x{2107}"                  \
    "\\x{210a}-\\x{2113}\\x{2115}\\x{2119}-\\x{211d}\\x{2124}\\x{2126}\\x{2128}"                   \
    "\\x{212a}-\\x{212d}\\x{212f}-\\x{2134}\\x{2139}\\x{213c}-\\x{213f}"                           \
    "\\x{2145}-\\x{2149}\\x{214e}\\x{2183}\\x{2184}\\x{2c00}-\\x{2c7b}"                            \
    "\\x{2c7e}-\\x{2ce4}\\x{2ceb}-\\x{2cee}\\x{2cf2}\\x{2cf3}\\x{a640}-\\x{a66d}"                  \
    "\\x{a680}-\\x{a69b}\\x{a722}-\\x{a76f}\\x{a771}-\\x{a787}\\x{a78b}-\\x{a78e}"                 \
    "\\x{ab70}-\\x{abbf}\\x{fb00}-\\x{fb06}\\x{fb13}-\\x{fb17}\\x{ff21}-\\x{ff3a}"                 \
    "\\x{ff41}-\\x{ff5a}\\x{10400}-\\x{1044f}\\x{104b0}-\\x{104d3}"                                \
    "\\x{104d8}-\\x{104fb}\\x{10c80}-\\x{10cb2}\\x{10cc0}-\\x{10cf2}"                              \
    "\\x{118a0}-\\x{118df}\\x{1e900}-\\x{1e943}"

static const mha_pre_kind kinds[] = {
    {.names = " gpt-2 phi-2 jina-es jina-de jina-v2-es jina-v2-de mellum jais trillion "
              "granite-docling ",
     .steps = {"@GPT2Words"}},
    {.names = " mpt olmo ", .nfc = true, .steps = {"@GPT2Words"}},
    {.names = " modern-bert ",
     .nfc = true,
     .around = true,
     .mask_lstrip = true,
     .steps = {"@GPT2Words"}},
    {.names = " roberta-bpe jina-v1-en jina-v2-code ",
     .around = true,
     .doubled = true,
     .mask_lstrip = true,
     .steps = {"@GPT2Words"}},
    {.names = " smollm starcoder refact codeshell exaone minerva-7b ",
     .steps = {"@SingleDigits", "@GPT2Words"}},
    {.names = " command-r ", .nfc = true, .steps = {"@SingleDigits", "@GPT2Words"}},
    {.names = " default ",
     .steps = {"[\\p{P}\\$\\+<=>\\^~\\|]+", GPT2_WORDS, "\\p{N}+", "[0-9][0-9][0-9]", "@Bytes"}},
    {.names = " falcon ", .steps = {"@Punctuation", "@GPT2Words", "@Digits", "[0-9][0-9][0-9]"}},
    {.names = " bloom poro-chat gpt3-finnish ", .steps = {BLOOM_WORDS, "@Bytes"}},
    {.names = " llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral lfm2 ",
     .ignore_merges = true,
     .add_bos = true,
     .steps = {LLAMA3_WORDS("\\p{N}{1,3}"), "@Bytes"}},
    {.names = " dbrx smaug-bpe chatglm-bpe ", .steps = {LLAMA3_WORDS("\\p{N}{1,3}"), "@Bytes"}},
    {.names = " qwen2 stablelm2 deepseek-r1-qwen megrez ",
     .nfc = true,
     .steps = {LLAMA3_WORDS("\\p{N}"), "@Bytes"}},
    {.names = " tekken ",
     .ignore_merges = true,
     .add_bos = true,
     .steps = {CASED_WORDS("", "\\p{N}"), "@Bytes"}},
    {.names = " gpt-4o llama4 ", .steps = {CASED_WORDS(CONTRACTIONS "?", "\\p{N}{1,3}"), "@Bytes"}},
    {.names = " deepseek-llm ",
     .steps = {"[\\r\\n]", "\\s?[" CASED_LETTERS "]+", "\\s?[!-/:-~！-／：-～‘-‟　-。]+", "\\s+$",
               DEEPSEEK_HAN, "\\p{N}+", "@Bytes"}},
    {.names = " deepseek-coder ",
     .steps = {"[\\r\\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", DEEPSEEK_HAN, "\\p{N}", "@Bytes"}},
    {.names = " deepseek-v3 ",
     .steps = {"\\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+", DEEPSEEK3_WORDS, "@Bytes"}},
};

const mha_pre_kind *mha_pre_kind_find(const char *name)
{
    char padded[80];
    int n = snprintf(padded, sizeof padded, " %s ", name);
    if (n < 3 || (size_t)n >= sizeof padded || strchr(name, ' '))
        return NULL;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strstr(kinds[i].names, padded))
            return &kinds[i];
    }
    return NULL;
}

static json_t *byte_level(int use_regex)
{
    return json_pack("{s:s, s:b, s:b, s:b}", "type", "ByteLevel", "add_prefix_space", 0,
                     "trim_offsets", 1, "use_regex", use_regex);
}

static json_t *digits(int individual)
{
    return json_pack("{s:s, s:b}", "type", "Digits", "individual_digits", individual);
}

static json_t *component(const char *step)
{
    if (strcmp(step, "@Bytes") == 0)
        return byte_level(0);
    if (strcmp(step, "@GPT2Words") == 0)
        return byte_level(1);
    if (strcmp(step, "@SingleDigits") == 0)
        return digits(1);
    if (strcmp(step, "@Digits") == 0)
        return digits(0);
    if (strcmp(step, "@Punctuation") == 0)
        return json_pack("{s:s, s:s}", "type", "Punctuation", "behavior", "Contiguous");
    return json_pack("{s:s, s:{s:s}, s:s, s:b}", "type", "Split", "pattern", "Regex", step,
                     "behavior", "Isolated", "invert", 0);
}

mha_status mha_pre_kind_describe(json_t **out, const mha_pre_kind *kind, mha_err *err)
{
    int failed = 0;
    json_t *steps = json_array();
    for (size_t i = 0; i < MHA_PRE_STEPS_MAX && kind->steps[i]; i++)
        failed |= json_array_append_new(steps, component(kind->steps[i]));
    *out = json_pack("{s:{s:s, s:o}, s:{s:s, s:b, s:b, s:b}}", "pre_tokenizer", "type", "Sequence",
                     "pretokenizers", steps, "decoder", "type", "ByteLevel", "add_prefix_space", 0,
                     "trim_offsets", 1, "use_regex", 1);
    if (*out && kind->nfc)
        failed |= json_object_set_new(*out, "normalizer", json_pack("{s:s}", "type", "NFC"));
    if (*out && !failed)
        return MHA_OK;
    json_decref(*out);
    *out = NULL;
    return mha_fail(err, MHA_ERR_NOMEM, "out of memory");
}
