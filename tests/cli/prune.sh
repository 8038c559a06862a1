# prune: which heads go, what is written, what is refused, and that nothing is ever half-written.
cp -r "$MHA_ROOT/tests/data/models/." .
try() {
    "$MHA" prune "$@"
    echo "-> $?"
}
heads() { # heads a layer of a directory
    "$MHA" info "$1" --format csv | cut -d, -f 1-4 | tail -n +2
}
echo "== by name, twice: numbers stay, and what is gone is told"
try gpt2-lm --heads 0.1,1.2,1.3 -o once
heads once
try once --heads 1.1-2,2.2 -o twice
heads twice
try twice --heads 1.2 -o thrice
sed -n '/"pruned_heads"/,$p' twice/config.json | tr -d ' \n'
echo
"$MHA" heads twice --ids 2,7,8,9 --layers 1-2 --format csv | cut -d, -f 1-4
echo "== all of a layer, all but some, masks"
try gpt2-lm --heads '1.*' -o empty
heads empty
"$MHA" run empty --ids 2,7,8 --top 1 --format csv | cut -d, -f 1-4
for method in gradient ablate-zero shapley; do
    "$MHA" importance empty --ids '2,7,8,9;3,4,5' --method $method --format csv -q | cut -d, -f 1-4 | sort -u | wc -l
done
"$MHA" importance empty --ids '2,7,8,9;3,4,5' --method fisher --format json -q | grep -c '"head_sum_error": [0-9.]*e-0[789]'
"$MHA" heads empty --ids 2,7,8 --format csv | wc -l
"$MHA" run empty --ids 1,2,3 --generate 4 --format csv | wc -l
"$MHA" maps empty --ids 2,7,8 --sites resid --layers 1 -o layer.npz && echo a layer without heads has its residual stream
try gpt2-lm --heads '*.*' -o bare
"$MHA" heads bare --ids 2,7,8
echo $?
"$MHA" importance bare --ids 2,7,8
echo $?
"$MHA" maps bare --ids 2,7,8 --sites logits,resid -o logits.npz && echo logits
try gpt2-lm --keep 0.0,1.0 -o few
try llama-gqa --heads 0.1 --mode mask -o masked
echo "-- masks of what was sliced open where the slices do"
try once --heads 2.0 --mode mask -o once-masked
try empty --heads 2.0 --mode mask -o empty-masked
echo "== key/value groups"
try llama-gqa --heads 0.1 -o no
try llama-gqa --heads 0.0-1,1.5 -o no
try llama-gqa --heads 0.0-2,1.0-2 -o equal
grep -E 'head_dim|attention_heads|key_value' equal/config.json | sort -u
try equal --heads 0.3 --mode mask -o equal-masked
"$MHA" importance bigcode --ids 2,7,8,9,3 -o query.json -q
try bigcode --fraction 0.9 --scores query.json -o no
try bigcode --fraction 0.5 --unit kv-group --scores query.json -o multi
try bigcode --fraction 0.9 --mode mask --scores query.json -o multi-masked
echo "== stacks and kinds"
try t5 --heads 0.1 -o no
try t5 --heads 0.1 --stack dec --kind cross -o cross
try t5 --heads enc.self.0.0 -o enc
echo "== rankings"
"$MHA" importance gpt2-lm --ids '2,7,8,9,10,3;5,6,7,8' --method fisher -o fisher.json -q
"$MHA" importance llama-gqa --ids '2,7,8,9,10,3;5,6,7,8' --unit kv-group -o groups.csv -q
try gpt2-lm --fraction 0.25 --scores fisher.json -o quarter
try gpt2-lm --budget 0.5 --scores fisher.json -o half
try gpt2-lm --budget 0.5 --ids '2,7,8,9,10,3;5,6,7,8' -o search
try llama-gqa --fraction 0.3 --scores groups.csv -o no
try llama-gqa --fraction 0.3 --unit kv-group --scores groups.csv -o grouped
"$MHA" importance gpt2-lm --ids '2,7,8,9,10,3;5,6,7,8' --unit layer -o layers.csv -q
try gpt2-lm --fraction 0.4 --unit layer --scores layers.csv -o layered
echo x,y >wrong.csv && echo 1,2 >>wrong.csv
try gpt2-lm --fraction 0.4 --scores wrong.csv -o no
try bert-mlm --fraction 0.3 --scores fisher.json -o no
try gpt2-lm --fraction 0.01 --scores fisher.json -o no
try gpt2-lm --budget 1 --scores fisher.json -o no
"$MHA" importance gpt2-lm --ids '2,7,8,9,10,3;5,6,7,8' -o ranks.csv -q
try gpt2-lm --fraction 0.25 --scores ranks.csv --by rank -o byrank
"$MHA" prune gpt2-lm --fraction 0.25 --scores ranks.csv -o byscore >/dev/null && cmp byrank/config.json byscore/config.json
try gpt2-lm --fraction 0.25 --scores ranks.csv --by scroe -o no
"$MHA" importance gpt2-lm --ids '2,7,8,9,10,3;5,6,7,8' --method gradient,fisher -o two.csv -q
try gpt2-lm --fraction 0.25 --scores two.csv -o no
"$MHA" importance gpt2-lm --ids '2,7,8,9,10,3;5,6,7,8' --per-document -o each.json -q
try gpt2-lm --fraction 0.25 --scores each.json -o no
head -5 ranks.csv >part.csv
try gpt2-lm --fraction 0.25 --scores part.csv -o no
echo "== folding means"
try gpt2-lm --heads 0.1 --fold-mean --ids 2,7,8,9 -o folded
try llama-gqa --heads 0.0-2 --fold-mean --ids 2,7,8,9 -o no
echo "== GGUF"
try llama-gqa.gguf --heads 0.0-2,1.0-2 -o from-gguf
ls from-gguf
echo "== usage"
try bert-mlm -o no
try bert-mlm --heads 0.1 --keep 0.0 -o no
try bert-mlm --heads 0.1
try bert-mlm --heads 0.9 -o no
try bert-mlm --heads 0.0-9 -o no
try bert-mlm --heads 0 -o no
try bert-mlm --fraction 0.5 -o no
try bert-mlm --heads 0.1 --scores fisher.json -o no
try bert-mlm --heads 0.1 --ids 2,3 -o no
try bert-mlm --heads 0.1 --dry-run -o no
try bert-mlm --heads 0.1 -o once
try bert-mlm --heads 0.1 -o once --force
mkdir full && echo x >full/x
try bert-mlm --heads 0.1 -o full --force
echo "== a full disk"
(
    trap '' XFSZ
    ulimit -f 40
    try gpt2-lm --heads 0.1 -o no
)
ls -d no* ./*.tmp 2>/dev/null
true
