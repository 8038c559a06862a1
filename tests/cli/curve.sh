# The pruning experiment from the command line: columns, rankings, summary, partial files, refusals.
cp -r "$MHA_ROOT/tests/data/models/." .
round() {
    awk -F, -v OFS=, '{ for (i = 1; i <= NF; i++) if ($i ~ /^-?[0-9.]+(e-?[0-9]+)?$/ && $i ~ /[.e]/) $i = sprintf("%.2f", $i); print }'
}
curve() {
    "$MHA" curve "$@" --format csv -q | round
}
rank='2,7,8,9,10,3;5,6,7,8;9,3,1,4,4'
echo "== one ranking, kept"
curve gpt2-lm --ids "$rank" --steps 4 --orders 3 --method ablate-zero
echo "== ranked again; greedy; no band; layers"
curve gpt2-lm --ids "$rank" --steps 3 --orders 0 --rescore | cut -d, -f 1-8
curve gpt2-lm --ids "$rank" --steps 3 --orders 0 --method greedy | cut -d, -f 1-4
curve gpt2-lm --ids "$rank" --steps 9 --orders 0 --unit layer | cut -d, -f 1-4
curve llama-gqa --ids "$rank" --steps 2 --orders 0 --unit kv-group | cut -d, -f 1-4
echo "== on documents other than those that rank"
cp -r "$MHA_ROOT/samples/models/shakespeare" .
printf '%s\n' 'To be, or not to be' 'that is the question' >rank.txt
printf '%s\n' 'Whether it is nobler' 'a' 'in the mind' >eval.txt
curve shakespeare --file rank.txt --eval eval.txt --steps 2 --orders 0 | cut -d, -f 1-4
"$MHA" curve shakespeare --file rank.txt --eval rank.txt --steps 1 --orders 0 --format csv >/dev/null
echo "== by a saved table, of some heads"
"$MHA" importance gpt2-lm --ids "$rank" -q -o scores.json
"$MHA" importance gpt2-lm --ids "$rank" -q -o scores.csv
curve gpt2-lm --ids 1,2,3,4,5 --scores scores.json --steps 2 --orders 0 | cut -d, -f 1-4
curve gpt2-lm --ids 1,2,3,4,5 --scores scores.csv --by signed --steps 2 --orders 0 --layers 1 | cut -d, -f 1-4
"$MHA" importance llama-gqa --ids "$rank" --unit kv-group -q -o groups.json
curve llama-gqa --ids "$rank" --scores groups.json --unit kv-group --steps 2 --orders 0 | cut -d, -f 1-2
echo "== JSON: summary, order, the same bytes whatever the threads, nothing left behind"
"$MHA" curve gpt2-lm --ids "$rank" --steps 4 --threads 1 -q -o one.json
"$MHA" curve gpt2-lm --ids "$rank" --steps 4 --threads 3 -q -o three.json --resume
cmp one.json three.json
grep -o '"area": \|"keeps_99_lo": \|"removed": \["dec.self.[0-9.]*"' one.json | cut -c 1-22
ls | grep -c partial
echo "== a note when the ranking measures itself"
"$MHA" curve gpt2-lm --ids 2,7,8,9 --steps 1 --format csv >/dev/null
echo "== no room for the partial file when it is interrupted"
(
    trap '' XFSZ
    ulimit -f 1
    timeout --preserve-status -s INT 2 "$MHA" curve gpt2-lm --ids "$rank" --steps 9 --orders 100000 \
        -o room.json -q >room.txt 2>&1
)
echo "exit code $?"
cat room.txt
ls room.json* 2>/dev/null
echo "== what it refuses"
try() {
    "$MHA" curve "$@" -q
    echo "exit code $?"
}
try bert-base --ids 2,7,8
try gpt2-lm --ids 2
try gpt2-lm --ids 2,7 --steps 0
try gpt2-lm --ids 2,7 --resume
try gpt2-lm --ids 2,7 --method gradient,fisher
try gpt2-lm --ids 2,7 --method greedy --rescore
try gpt2-lm --ids 2,7 --method gredy
try gpt2-lm --ids 2,7 --scores scores.json --rescore
try gpt2-lm --ids 2,7 --by signed
try gpt2-lm --ids 2,7 --scores scores.csv --by importance
try llama-gqa --ids 2,7 --scores scores.json
try gpt2-lm --ids 2,7 --scores nothing.json
try gpt2-lm --ids 2,7 --eval nothing.txt
echo stack,kind,layer,head,score >wrong.csv && echo dec,self,0,9,1 >>wrong.csv
try gpt2-lm --ids 2,7 --scores wrong.csv
echo no partial result >x.json.curve.partial
try gpt2-lm --ids 2,7,8 --resume -o x.json
try gpt2-lm --ids 2,7 -o x.npz
try gpt2-lm --ids 2,7 -o x.png --colormap viridis
echo "== the figure"
for suffix in png pdf svg; do
    "$MHA" curve gpt2-lm --ids "$rank" --steps 4 --orders 3 --title Curve -q -o "x.$suffix" && head -c 4 "x.$suffix" | tr -cd 'A-Z%<?'
    echo
done
grep -c "least important first" x.svg
"$MHA" curve gpt2-lm --ids "$rank" --unit layer --steps 2 --orders 0 -q -o y.svg && grep -o "layers removed" y.svg
