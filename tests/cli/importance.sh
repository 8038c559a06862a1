# Importance from the command line: columns, methods, losses, units, views, and what it refuses.
# What the numbers are is tested elsewhere; here they are rounded.
cp -r "$MHA_ROOT/tests/data/models/." .
cp -r "$MHA_ROOT/samples/models/shakespeare" .
round() {
    awk -F, -v OFS=, '{ for (i = 1; i <= NF; i++) if ($i ~ /^-?[0-9.]+(e-?[0-9]+)?$/ && $i ~ /[.e]/) $i = sprintf("%.3f", $i); print }'
}
importance() {
    "$MHA" importance "$@" --format csv -q | round
}
three='2,7,8,9,10,3;5,6,7,8;9,3,1,4,4'
echo "== every method"
for method in gradient fisher ablate-zero ablate-mean ablate-resample all-but-one shapley l0 dla; do
    echo "-- $method"
    importance gpt2-lm --ids "$three" --layers 1 --method "$method" | cut -d, -f 1-6,10
done
echo "== several at once"
importance gpt2-lm --ids "$three" --layers 1 --heads '1.0-1' --method ablate-zero,gradient
"$MHA" importance gpt2-lm --ids "$three" --method ablate-zero,gradient -o two.json
sed -n 's/.*"pairs": \[{"a": "\([a-z-]*\)", "b": "\([a-z-]*\)", "spearman": .*/\1 \2/p' two.json
echo "== one document: no intervals"
importance gpt2-lm --ids 2,7,8,9 --layers 0
echo "== units"
importance llama-gqa --ids "$three" --unit kv-group --method ablate-zero
importance gpt2-lm --ids "$three" --unit layer --method ablate-zero
echo "== views"
importance gpt2-lm --ids "$three" --by-layer
importance gpt2-lm --ids "$three" --sort signed --top 2
importance gpt2-lm --ids "$three" --sort -signed --top 2
importance gpt2-lm --ids '2,7,8,9;5;9,3,1' --per-document --heads 0.0
echo "== losses"
printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' the cat sat >vocab.txt
cp vocab.txt bert-mlm && cp vocab.txt bert-class
importance bert-mlm --text 'the cat sat the cat' --heads 0.0
importance bert-mlm --text 'the [MASK] sat' --target 'the cat sat' --heads 0.0
importance bert-mlm --text 'the [MASK] sat' --logit-diff cat,the --heads 0.0
printf 'text\tlabel\nthe cat\tLABEL_1\nthe sat\t0\nsat\t\n' >labels.tsv
"$MHA" importance bert-class --file labels.tsv --heads 0.0 --format csv | round
importance bert-class --text 'the cat' --logit-diff LABEL_0,2 --heads 0.0
importance t5 --ids 2,7,8,9,3 --target-ids 0,5,6 --heads 1.0
importance shakespeare --text 'To be, or not to b' --logit-diff e,a --heads 0.0
echo "== the same bytes whatever the threads, and nothing of the machine"
for method in gradient ablate-zero ablate-resample shapley dla; do
    "$MHA" importance shakespeare --text 'To be, or not to be' --text 'that is the question' \
        --method "$method" --format json -q --threads 1 >one.json
    "$MHA" importance shakespeare --text 'To be, or not to be' --text 'that is the question' \
        --method "$method" --format json -q --threads 3 >three.json
    cmp one.json three.json
    grep -c "$PWD" one.json
done
echo "== direct attribution: its check, heads without a direct path"
"$MHA" importance shakespeare --text 'To be, or not to b' --logit-diff e,a --method dla --heads 0.0-1 --format json -q |
    sed -n 's/.*"completeness_error": \([0-9.]*e-0[6-9]\|0.0\).*/complete/p'
"$MHA" importance t5 --ids 2,7,8,9,3 --target-ids 0,5,6 --heads 1.0 --method dla --format csv 2>note.txt |
    cut -d, -f 1-5 | round
sed 's/\(0.0e+00\|[0-9.]*e-[01][0-9]\)$/little/' note.txt
importance gpt2-lm --ids "$three" --layers 1 --unit layer --method dla,ablate-zero | cut -d, -f 1-6
echo "== pictures"
"$MHA" importance shakespeare --text 'To be, or not to be' -o chart.svg --caption caption.txt
grep -c '<svg' chart.svg
cat caption.txt
"$MHA" importance gpt2-lm --ids "$three" --unit layer -o layers.png -q && head -c 4 layers.png | tail -c 3
echo
echo "== what it refuses"
try() {
    "$MHA" importance "$@"
    echo "exit code $?"
}
try bert-base --ids 2,7,8
try gpt2-lm --ids 2
try gpt2-lm --ids 2,7 --resume
try gpt2-lm --ids 2,7 --method gradiant
try gpt2-lm --ids 2,7 --method gradient,gradient
try gpt2-lm --ids 2,7 --loss class
try gpt2-lm --ids 2,7 --heads 9.9
try gpt2-lm --ids 2,7 --logit-diff 1
try gpt2-lm --ids 2,7 --logit-diff 1,99
try gpt2-lm --ids 2,7 --loss next --logit-diff 1,2
try gpt2-lm --ids 2,7 --method ablate-resample
try gpt2-lm --ids "$three" --method l0 --per-document
try bert-mlm --text 'the [MASK] sat' --target 'the cat sat' --method dla
try gpt2-lm --ids 2,7 --by-layer --per-document
try gpt2-lm --ids 2,7 --method gradient,fisher -o x.png
try gpt2-lm --ids 2,7 --by-layer --sort rank
try gpt2-lm --ids 2,7 --reference nothing.txt
printf 'text\tlabel\nthe cat\t3\n' >labels.tsv
try bert-class --file labels.tsv
printf 'text\tlabel\nthe cat\tgood\n' >labels.tsv
try bert-class --file labels.tsv
try bert-class --text 'the cat'
try bert-mlm --text 'the [MASK] sat' --target 'the cat'
rm bert-mlm/vocab.txt
try bert-mlm --ids 2,7,8
: >empty.txt
try shakespeare --file empty.txt
