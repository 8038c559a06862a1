/* topics.c: help that belongs to no single command. Texts only, in lines of at most 80 columns. */
#include "cli/help.h"

const char mha_help_model[] =
    "MODEL is a directory (config.json with *.safetensors, tokenizer files beside it), a .gguf "
    "file, or sample:NAME, a bundled model.";

const mha_topic mha_topics[] = {
    {"inputs", "where the documents come from",
     "Every command that runs a model takes its documents from one or more of:\n"
     "\n"
     "  --text STR        one document; --pair adds its second segment, --target the\n"
     "                    decoder's text\n"
     "  --file F.txt      one document a line\n"
     "  --file F.tsv      a header line; fields text, pair, target, label\n"
     "  --file F.jsonl    one object a line, with the same fields\n"
     "  --file F.conllu   the sentences of a treebank\n"
     "  --file F.fasta    the sequences\n"
     "  --ids 1,2;3,4     token ids, ';' between documents; --target-ids likewise\n"
     "  --ids-file F      .npy or .npz [T] or [B,T], or .json: a list, a list of lists,\n"
     "                    or an object with ids; an attention_mask removes padding\n"
     "  --maps F.npz      instead of MODEL, written - then: maps that another program\n"
     "                    dumped, for heads and heatmap; arrays named as in 'help arrays'\n"
     "                    (ids where it has them), or one array [L,H,T,S], also as .npy\n"
     "  --graph F.json    a graph: num_nodes, edge_index [[sources], [targets]], x (a list\n"
     "                    of features for each node) or num_features and x_sparse_rows\n"
     "                    (those that are 1), and perhaps y (a class for each node)\n"
     "\n"
     "Text gets the tokenizer's own special tokens (--no-special: none); ids are fed\n"
     "exactly as given. A document that is too long, empty, or holds an id outside\n"
     "the vocabulary is an error when it is the only one; among several it is\n"
     "skipped, counted and named.\n"},
    {"selection", "choosing stacks, kinds, layers and heads",
     "Layers and heads are counted from 0. What all given options allow is selected.\n"
     "\n"
     "  --layers 0,3-5         layers of every stack and kind\n"
     "  --heads 4.7            layer 4, head 7, in every stack and kind\n"
     "  --heads 5.*            all heads of layer 5\n"
     "  --heads enc.self.4.7   the full form: stack, kind, layer, head\n"
     "  --stack enc|dec|graph  encoder, decoder, layers of a graph\n"
     "  --kind self|cross      self-attention, or attention to the encoder\n"
     "\n"
     "An item that selects nothing is an error. A pruned model's heads keep the\n"
     "numbers they had before.\n"},
    {"arrays", "names and shapes of the arrays of maps",
     "Arrays are named STACK.KIND.LAYER.SITE, e.g. enc.self.0.pattern. T queries,\n"
     "S keys, H heads, G key/value heads, K head width, D model width, V vocabulary.\n"
     "\n"
     "  pattern    [H,T,S]  attention weights; masked entries are exactly 0\n"
     "  scores     [H,T,S]  what enters the softmax; masked entries are -inf\n"
     "  q          [H,T,K]  after norm and rotary, before the scale\n"
     "  k          [G,S,K]  after norm and rotary\n"
     "  v          [G,S,K]  as projected\n"
     "  z          [H,T,K]  the head's output before the output matrix\n"
     "  head_out   [H,T,D]  the head's part of the layer's output, without bias\n"
     "  heads      [H]      original head numbers, written with any of the above\n"
     "  embed      [T,D]    STACK.embed: the first block's input\n"
     "  resid      [T,D]    STACK.LAYER.resid: after the whole block\n"
     "  hidden     [T,D]    STACK.hidden: after the final norm\n"
     "  logits     [T,V]    or [classes]\n"
     "\n"
     "In models of graphs T are nodes, patterns and scores are [H,E] over the edges of\n"
     "graph.self.LAYER.edge_index [2,E] (sources, targets; the model's own loops come\n"
     "last), and D is the width of the layer.\n"
     "\n"
     "ids [T], and target_ids for a decoder that reads an encoder, are always\n"
     "written, except to .npy, which takes one array. Values are float32, ids int64.\n"},
    {"formats", "output files",
     "-o PATH chooses the format by its suffix, --format NAME regardless of it;\n"
     "-o - is standard output.\n"
     "\n"
     "  tables     text (.txt), json, csv\n"
     "  arrays     npz, npy, safetensors\n"
     "  figures    png, pdf, svg\n"
     "\n"
     "An existing file is not overwritten without --force. Files appear whole or not\n"
     "at all. JSON holds the table with its settings and checks, and neither times\n"
     "nor paths, so that equal results are equal files. A value that is not defined\n"
     "is empty in CSV and null in JSON.\n"},
    {"exit", "exit codes",
     "  0    done\n"
     "  1    could not do it: output failure, no memory, over --memory, nothing to\n"
     "       measure\n"
     "  2    wrong usage\n"
     "  3    bad or unsupported model or input: missing, malformed, too long, an id out\n"
     "       of range\n"
     "  130  interrupted\n"
     "\n"
     "An error is one line on standard error.\n"},
    {"environment", "environment variables",
     "  MHA_SAMPLES  directory in which sample:NAME is looked up\n"
     "  MHA_ISA      ref, avx2 or avx512: kernels to use, as --isa\n"
     "  NO_COLOR     no colours on the terminal\n"},
};

const size_t mha_topic_count = sizeof mha_topics / sizeof *mha_topics;
