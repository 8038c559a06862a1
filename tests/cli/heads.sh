# Descriptors of heads. What they are is tested elsewhere; here are columns, selections and views.
cd "$MHA_ROOT/tests/data/models" || exit 1
out=$OLDPWD
round() {
    awk -F, -v OFS=, '{ for (i = 1; i <= NF; i++) if ($i ~ /^-?[0-9.]+(e-?[0-9]+)?$/ && $i ~ /[.e]/) $i = sprintf("%.3f", $i); print }'
}
heads() {
    "$MHA" heads "$@" --format csv | round
}
echo "== all heads of one document"
heads bert-mlm --ids 2,7,8,9,3
heads gpt2-lm --ids 2,7,8,9,3 --layers 0
echo "== one token: nothing to spread over"
heads gpt2-lm --ids 2 --heads 0.0
echo "== encoder and decoder"
heads t5 --ids 2,7,8,9,3 --target-ids 0,5,6 --heads 0.1
heads t5 --ids 2,7,8,9,3 --target-ids 0,5,6 --stack dec --kind cross --heads '1.*,dec.cross.2.0-1'
heads t5 --ids 2,7,8,9,3 --heads 1.0
heads t5 --ids 2,7,8,9,3 --stack dec
echo "== a corpus: intervals"
heads bert-mlm --ids '2,7,8;5,6,7,8;9,3' --heads 0.0 | head -1 | tr ',' '\n' | grep -c _lo
heads bert-mlm --ids '2,7,8;5,6,7,8;9,3' --heads 0.0 | cut -d, -f 1-6
heads bert-mlm --ids '2,7,8;5,6,7,8;9,3' --heads 0.0 --bootstrap 0
heads bert-mlm --ids '2,7,8;5,99;9,3' --heads 0.0 --per-document
echo "== views"
heads bert-mlm --ids 2,7,8,9,3 --by-layer
heads bert-mlm --ids 2,7,8,9,3 --sort self_mass --top 2 | cut -d, -f 1-4,12
heads bert-mlm --ids 2,7,8,9,3 --sort -self_mass --top 2 | cut -d, -f 1-4,12
echo "== JSON: the same bytes whatever the threads, and no path of the machine"
"$MHA" heads bert-mlm --ids '2,7,8;5,6,7,8;9,3' --format json --threads 1 >"$out/one.json"
"$MHA" heads bert-mlm --ids '2,7,8;5,6,7,8;9,3' -o "$out/two.json" --threads 2
cmp "$out/one.json" "$out/two.json" && echo same
grep -c "$PWD" "$out/one.json"
sed -n '1,6p' "$out/one.json"
