# Attention during generation: put together step by step, it is that of one pass over the whole text.
cp -r "$MHA_ROOT/tests/data/models/." .
cat >close.awk <<'AWK'
{ d = $1 - $2; d = d < 0 ? -d : d; if (d > worst) worst = d; n++ }
END { print n " weights", worst <= 1e-6 ? "the same" : "off by " worst }
AWK
weights() { # the float32 of a .npy file
    od -An -v -t f4 -w4 -j 128 "$1"
}
echo "== a decoder"
"$MHA" run gpt2-lm --ids 2,7,8 --generate 5 --format csv -q
"$MHA" maps gpt2-lm --ids 2,7,8 --generate 5 --layers 1 -q -o steps.npy
"$MHA" maps gpt2-lm --ids 2,7,8,"$("$MHA" run gpt2-lm --ids 2,7,8 --generate 5 --format csv -q | sed -n '2s/^0,\([^,]*\),*$/\1/p' | tr ' ' ,)" --layers 1 -q -o whole.npy
weights steps.npy >a && weights whole.npy >b && paste a b | awk -f close.awk
echo "== an encoder with its decoder, drawn with a seed: self and cross"
"$MHA" maps bart --ids 5,6,7 --generate 4 --sample --seed 3 --stack dec --kind cross --layers 0 -q -o cross.npy
"$MHA" run bart --ids 5,6,7 --generate 4 --sample --seed 3 --format csv -q
head -c 128 cross.npy | tail -c 118 | sed 's/ *$//'
echo "== a figure"
"$MHA" heatmap sample:shakespeare --text "To be, or not to be" --generate 6 --heads 1.0 -q -o g.svg && grep -c "<text" g.svg
echo "== what it refuses"
try() {
    "$MHA" "$@" -q
    echo "exit code $?"
}
try maps gpt2-lm --ids 2,7 --generate 3 --sites q -o x.npz
try maps bert-base --ids 2,7 --generate 3 -o x.npz
try maps gpt2-lm --ids 2,7 --sample -o x.npz
try heatmap gpt2-lm --ids 2,7 --temperature 2 -o x.png
try heads gpt2-lm --ids 2,7 --generate 3
