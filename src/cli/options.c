/* options.c: the table of all options. Data only; args.c reads the command line by it. */
#include "cli/options.h"

#define INFO    (1u << MHA_CMD_INFO)
#define TOKENS  (1u << MHA_CMD_TOKENS)
#define RUN     (1u << MHA_CMD_RUN)
#define MAPS    (1u << MHA_CMD_MAPS)
#define HEADS   (1u << MHA_CMD_HEADS)
#define HEATMAP (1u << MHA_CMD_HEATMAP)
#define IMPORT  (1u << MHA_CMD_IMPORTANCE)
#define CURVE   (1u << MHA_CMD_CURVE)
#define PRUNE   (1u << MHA_CMD_PRUNE)
#define ATTRIB  (1u << MHA_CMD_ATTRIBUTE)
#define HELP    (1u << MHA_CMD_HELP)

#define ENGINE  (RUN | MAPS | HEADS | HEATMAP | IMPORT | CURVE | PRUNE | ATTRIB)
#define INPUT   (TOKENS | ENGINE)
#define MODEL   (INFO | INPUT)
#define DUMPED  (HEADS | HEATMAP)
#define PATTERN (MAPS | HEADS | HEATMAP)
#define CHOICE  (PATTERN | IMPORT | CURVE | PRUNE)
#define SCORES  (IMPORT | CURVE)
#define LOSS    (SCORES | PRUNE)
#define TABLES  (HEADS | IMPORT)
#define MAPPED  (HEATMAP | ATTRIB)
#define COLORED (HEADS | IMPORT | MAPPED)
#define FIGURE  (COLORED | CURVE)
#define ALL     (MODEL | HELP)

const mha_option mha_options[MHA_OPT_COUNT] = {
    {MHA_OPT_TEXT, MHA_GROUP_INPUT, INPUT, "--text", "STR", NULL,
     "a document; repeat it for several"},
    {MHA_OPT_PAIR, MHA_GROUP_INPUT, INPUT, "--pair", "STR", NULL,
     "second segment of the last --text"},
    {MHA_OPT_TARGET, MHA_GROUP_INPUT, INPUT, "--target", "STR", NULL,
     "decoder text of the last --text"},
    {MHA_OPT_FILE, MHA_GROUP_INPUT, INPUT, "--file", "F", NULL,
     "documents by suffix: .txt one a line, .tsv with a header line, .jsonl, .conllu, .fasta"},
    {MHA_OPT_IDS, MHA_GROUP_INPUT, INPUT, "--ids", "LIST", NULL,
     "token ids fed exactly as given: 1,2,3 (';' between documents)"},
    {MHA_OPT_TARGET_IDS, MHA_GROUP_INPUT, INPUT, "--target-ids", "LIST", NULL,
     "the decoder's ids exactly as fed, start token included"},
    {MHA_OPT_IDS_FILE, MHA_GROUP_INPUT, INPUT, "--ids-file", "F", NULL,
     "ids from .npy, .npz or .json; an attention_mask beside ids is honoured"},
    {MHA_OPT_GRAPH, MHA_GROUP_INPUT, INPUT, "--graph", "F", NULL,
     "a graph as .json: num_nodes, edge_index, x or x_sparse_rows, perhaps y"},
    {MHA_OPT_MAPS, MHA_GROUP_INPUT, DUMPED, "--maps", "F", NULL,
     "maps that another program dumped, .npz or .npy, instead of MODEL (written - then)"},
    {MHA_OPT_IMAGE, MHA_GROUP_INPUT, INPUT, "--image", "F", NULL,
     "a picture, PNG or JPEG, prepared as the checkpoint says; repeat it for several"},
    {MHA_OPT_FEATURES, MHA_GROUP_INPUT, INPUT, "--features", "F", NULL,
     "prepared features as .npy: pixels [channels, height, width], spectra [mel, frames]"},
    {MHA_OPT_MAX_DOCS, MHA_GROUP_INPUT, INPUT, "--max-docs", "N", "all",
     "reads the first N documents"},
    {MHA_OPT_MAX_TOKENS, MHA_GROUP_INPUT, INPUT, "--max-tokens", "N", "no limit",
     "cuts a document after N tokens, and says so"},
    {MHA_OPT_NO_SPECIAL, MHA_GROUP_INPUT, INPUT, "--no-special", NULL, NULL,
     "leaves out the tokenizer's own special tokens"},
    {MHA_OPT_GLOBAL, MHA_GROUP_INPUT, INPUT, "--global", "LIST", "the model's own",
     "positions of tokens with global attention, as in 0,5, in every document"},

    {MHA_OPT_PROGRAM, MHA_GROUP_COMMAND, INFO, "--program", NULL, NULL,
     "prints the block program with its shapes and tensors"},
    {MHA_OPT_TENSORS, MHA_GROUP_COMMAND, INFO, "--tensors", NULL, NULL,
     "lists every tensor of the files"},
    {MHA_OPT_HASH, MHA_GROUP_COMMAND, INFO, "--hash", NULL, NULL,
     "SHA-256 of the whole files; reads all of them"},

    {MHA_OPT_GENERATE, MHA_GROUP_COMMAND, RUN | MAPS | HEATMAP, "--generate", "N", NULL,
     "writes up to N new tokens, greedily unless --sample; maps, heatmap: their attention"},
    {MHA_OPT_BEAM, MHA_GROUP_COMMAND, RUN, "--beam", "B", "1",
     "beam search: looks for the likeliest whole text among B that grow side by side"},
    {MHA_OPT_SAMPLE, MHA_GROUP_COMMAND, RUN | MAPS | HEATMAP, "--sample", NULL, NULL,
     "draws each new token; see --temperature, --top, --seed"},
    {MHA_OPT_TEMPERATURE, MHA_GROUP_COMMAND, RUN | MAPS | HEATMAP, "--temperature", "X", "1",
     "divides the logits before drawing"},
    {MHA_OPT_TOP, MHA_GROUP_COMMAND, RUN | TABLES | ATTRIB, "--top", "K", NULL,
     "run: answers shown (10), or tokens drawn from (all); tables: only the first K rows; "
     "attribute: only the K likeliest pairs"},

    {MHA_OPT_SITES, MHA_GROUP_COMMAND, MAPS, "--sites", "LIST", "pattern",
     "what to write: pattern scores q k v z head_out embed resid hidden logits"},
    {MHA_OPT_LAYERS, MHA_GROUP_COMMAND, CHOICE, "--layers", "LIST", "all", "layers from 0: 0,3-5"},
    {MHA_OPT_HEADS, MHA_GROUP_COMMAND, CHOICE, "--heads", "LIST", "all",
     "heads as LAYER.HEAD: 4.7,5.* or in full enc.self.4.7; prune: those that go"},
    {MHA_OPT_STACK, MHA_GROUP_COMMAND, CHOICE, "--stack", "enc|dec|graph", "all",
     "only this stack of layers"},
    {MHA_OPT_KIND, MHA_GROUP_COMMAND, CHOICE, "--kind", "self|cross", "both",
     "only this kind of attention"},
    {MHA_OPT_WORDS, MHA_GROUP_COMMAND, PATTERN, "--words", NULL, NULL,
     "merges pieces to words: sum over key pieces, mean over query pieces"},
    {MHA_OPT_SPECIAL, MHA_GROUP_COMMAND, HEADS | HEATMAP, "--special", "keep|mass|renorm", "keep",
     "special tokens: keep them, drop them with their mass, or drop and renormalise"},
    {MHA_OPT_PER_DOCUMENT, MHA_GROUP_COMMAND, TABLES, "--per-document", NULL, NULL,
     "one row a document and head"},
    {MHA_OPT_BY_LAYER, MHA_GROUP_COMMAND, TABLES, "--by-layer", NULL, NULL,
     "one row a layer: the mean of its heads"},
    {MHA_OPT_SORT, MHA_GROUP_COMMAND, TABLES, "--sort", "COL", NULL,
     "orders rows by a column, largest first; -COL smallest first"},
    {MHA_OPT_METHOD, MHA_GROUP_COMMAND, SCORES | ATTRIB, "--method", "M", "gradient",
     "gradient fisher ablate-zero ablate-mean ablate-resample all-but-one shapley l0 dla; "
     "importance "
     "takes several: M,M; curve also takes greedy; attribute needs one: contacts"},
    {MHA_OPT_LOSS, MHA_GROUP_COMMAND, LOSS, "--loss", "auto|next|masked|target|class|logit-diff",
     "auto", "what the model is to predict"},
    {MHA_OPT_LOGIT_DIFF, MHA_GROUP_COMMAND, LOSS, "--logit-diff", "A,B", NULL,
     "two tokens (or ids, or classes): the loss is the logit of B less that of A at the last "
     "position"},
    {MHA_OPT_MASK_RATE, MHA_GROUP_COMMAND, LOSS, "--mask-rate", "P", "0.15",
     "masked loss: share of the tokens that are masked"},
    {MHA_OPT_UNIT, MHA_GROUP_COMMAND, LOSS, "--unit", "head|kv-group|layer", "head",
     "what is taken out at once"},
    {MHA_OPT_REFERENCE, MHA_GROUP_COMMAND, LOSS, "--reference", "F", "the input",
     "ablate-mean, -resample, --fold-mean: documents that the replacement comes from"},
    {MHA_OPT_DRAWS, MHA_GROUP_COMMAND, SCORES, "--draws", "N", "by method",
     "ablate-resample: replacements of each document (10); shapley: pairs of orders of each"},
    {MHA_OPT_BOOTSTRAP, MHA_GROUP_COMMAND, TABLES | CURVE, "--bootstrap", "N", "2000",
     "resamples of the documents for intervals; 0: none"},
    {MHA_OPT_CI, MHA_GROUP_COMMAND, TABLES | CURVE, "--ci", "P", "0.95",
     "coverage of the intervals"},
    {MHA_OPT_KEEP, MHA_GROUP_COMMAND, PRUNE, "--keep", "LIST", NULL, "all heads but these go"},
    {MHA_OPT_FRACTION, MHA_GROUP_COMMAND, PRUNE, "--fraction", "X", NULL,
     "this fraction of the heads goes, those of least score in --scores"},
    {MHA_OPT_BUDGET, MHA_GROUP_COMMAND, PRUNE, "--budget", "X", NULL,
     "heads go until this fraction of the attention's multiply-adds is left: by --scores, or by a "
     "search with gradients on the input"},
    {MHA_OPT_SCORES, MHA_GROUP_COMMAND, CURVE | PRUNE, "--scores", "F", NULL,
     "a table that importance wrote, .json or .csv"},
    {MHA_OPT_BY, MHA_GROUP_COMMAND, CURVE | PRUNE, "--by", "COL", "score",
     "the column of --scores that ranks"},
    {MHA_OPT_EVAL, MHA_GROUP_COMMAND, CURVE, "--eval", "F", "the input",
     "documents that measure the curve, other than those that rank the heads"},
    {MHA_OPT_STEPS, MHA_GROUP_COMMAND, CURVE, "--steps", "N", "10", "steps from all heads to none"},
    {MHA_OPT_RESCORE, MHA_GROUP_COMMAND, CURVE, "--rescore", NULL, NULL,
     "ranks the heads that are left again at every step"},
    {MHA_OPT_ORDERS, MHA_GROUP_COMMAND, CURVE, "--orders", "N", "20",
     "random orders for the band; 0: none"},
    {MHA_OPT_RESUME, MHA_GROUP_COMMAND, SCORES, "--resume", NULL, NULL,
     "continues an interrupted run from the .partial file beside its output"},
    {MHA_OPT_MODE, MHA_GROUP_COMMAND, PRUNE, "--mode", "slice|mask", "slice",
     "cut heads out of the weights, or set their output columns to 0"},
    {MHA_OPT_FOLD_MEAN, MHA_GROUP_COMMAND, PRUNE, "--fold-mean", NULL, NULL,
     "adds the heads' mean output on the input, or on --reference, to the output bias"},

    {MHA_OPT_ROWS, MHA_GROUP_FIGURE, HEATMAP, "--rows", "A-B", "all", "query tokens shown, from 0"},
    {MHA_OPT_COLS, MHA_GROUP_FIGURE, HEATMAP, "--cols", "A-B", "all", "key tokens shown, from 0"},
    {MHA_OPT_LABELS, MHA_GROUP_FIGURE, MAPPED, "--labels", "tokens|words|none", "tokens",
     "what stands at the axes"},
    {MHA_OPT_SCALE, MHA_GROUP_FIGURE, MAPPED, "--scale", "linear|log|clip", "linear",
     "how weights become colours"},
    {MHA_OPT_COLORMAP, MHA_GROUP_FIGURE, COLORED, "--colormap", "NAME", "by figure",
     "colour map; a wrong name lists them"},
    {MHA_OPT_EXACT, MHA_GROUP_FIGURE, MAPPED, "--exact", NULL, NULL,
     "one weight one pixel, PNG only"},
    {MHA_OPT_WIDTH, MHA_GROUP_FIGURE, FIGURE, "--width", "MM", "85",
     "width of the figure in millimetres"},
    {MHA_OPT_DPI, MHA_GROUP_FIGURE, FIGURE, "--dpi", "N", "300", "resolution of a PNG"},
    {MHA_OPT_FONT, MHA_GROUP_FIGURE, FIGURE, "--font", "NAME", NULL, "font of all text"},
    {MHA_OPT_FONT_SIZE, MHA_GROUP_FIGURE, FIGURE, "--font-size", "PT", NULL,
     "size of the labels in points"},
    {MHA_OPT_TITLE, MHA_GROUP_FIGURE, FIGURE, "--title", "STR", NULL, "a line above the figure"},
    {MHA_OPT_CAPTION, MHA_GROUP_FIGURE, FIGURE, "--caption", "F", NULL,
     "writes a caption that says what is shown to a text file"},
    {MHA_OPT_DARK, MHA_GROUP_FIGURE, FIGURE, "--dark", NULL, NULL, "light text on a dark ground"},

    {MHA_OPT_OUTPUT, MHA_GROUP_OUTPUT, MODEL, "-o", "PATH", "-",
     "output file, - for standard output; its suffix chooses the format"},
    {MHA_OPT_FORMAT, MHA_GROUP_OUTPUT, MODEL & ~PRUNE, "--format", "F", "by suffix",
     "text json csv npz npy safetensors png pdf svg, as the command allows"},
    {MHA_OPT_FORCE, MHA_GROUP_OUTPUT, MODEL, "--force", NULL, NULL, "overwrites existing files"},

    {MHA_OPT_THREADS, MHA_GROUP_COMMON, MODEL, "--threads", "N", "all",
     "worker threads; results do not depend on it"},
    {MHA_OPT_ISA, MHA_GROUP_COMMON, MODEL, "--isa", "ref|avx2|avx512", "the best",
     "forces one set of kernels"},
    {MHA_OPT_SEED, MHA_GROUP_COMMON, MODEL, "--seed", "N", "0", "seed of all that is drawn"},
    {MHA_OPT_MEMORY, MHA_GROUP_COMMON, MODEL, "--memory", "BYTES", "no limit",
     "refuses a run that needs more beyond the weights: 500M, 2G"},
    {MHA_OPT_FAMILY, MHA_GROUP_COMMON, MODEL, "--family", "F", "by config.json",
     "opens the model by this description, for a family that is not built in"},
    {MHA_OPT_LIMIT, MHA_GROUP_COMMON, MODEL, "--limit", "NAME=V", NULL,
     "bounds on files: tensors, header (bytes), file (bytes of a text input)"},
    {MHA_OPT_DRY_RUN, MHA_GROUP_COMMON, MODEL, "--dry-run", NULL, NULL,
     "prints what would run, with its memory, and stops"},
    {MHA_OPT_PROGRESS, MHA_GROUP_COMMON, MODEL, "--progress", "auto|always|never", "auto",
     "progress bar on standard error"},
    {MHA_OPT_QUIET, MHA_GROUP_COMMON, MODEL, "-q", NULL, NULL, "no notes, errors only"},
    {MHA_OPT_VERBOSE, MHA_GROUP_COMMON, MODEL, "-v", NULL, NULL,
     "more notes: every skipped document, the plan"},
    {MHA_OPT_VERSION, MHA_GROUP_COMMON, ALL, "--version", NULL, NULL, "prints the version"},
    {MHA_OPT_HELP, MHA_GROUP_COMMON, ALL, "--help", NULL, NULL, "prints the command's help"},
};

const char *mha_option_group_title(mha_option_group group)
{
    static const char *const titles[MHA_GROUP_COUNT] = {
        [MHA_GROUP_INPUT] = "Input",   [MHA_GROUP_COMMAND] = "Options",
        [MHA_GROUP_FIGURE] = "Figure", [MHA_GROUP_OUTPUT] = "Output",
        [MHA_GROUP_COMMON] = "Common",
    };
    return titles[group];
}
