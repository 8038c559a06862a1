# Maps from a file in the place of a model: what `maps` wrote gives the numbers and the picture of
# the model itself, and what is not attention is refused.
models=$MHA_ROOT/tests/data/models
ids=1,2,3,4,5,6
same() { # A B: the same rows, numbers within 1e-5, special_mass and sink_mass aside
    awk -F, 'NR == FNR { line[NR] = $0; next }
        { n = split(line[FNR], a, ",")
          if (FNR == 1) for (i = 1; i <= n; i++) skip[i] = a[i] ~ /^s(pecial|ink)_mass$/
          for (i = 1; i <= n; i++) {
              d = a[i] - $i
              if (!skip[i] && (a[i] == "") != ($i == "")) bad++
              else if (!skip[i] && a[i] != "" && (d > 1e-5 || d < -1e-5)) bad++
              else if (i <= 2 && a[i] != $i) bad++
          }
          rows++ }
        END { print rows " lines, " bad + 0 " values differ" }' "$1" "$2"
}
round() { # MODEL OPTIONS
    name=$1
    shift
    "$MHA" maps "$models/$name" "$@" -q --force -o "$name.npz" &&
        "$MHA" heads "$models/$name" "$@" --format csv -q >model.csv &&
        "$MHA" heads - --maps "$name.npz" --format csv -q >maps.csv && same model.csv maps.csv
}
round gpt2-lm --ids $ids
round bert-mlm --ids $ids
round t5 --ids $ids --target-ids 0,4,5
round bert-mlm --ids $ids --heads 0.1
"$MHA" heads - --maps gpt2-lm.npz --format json -q | grep -o '"row_sum_error"'
"$MHA" heads - --maps gpt2-lm.npz --dry-run

# A window cannot be told from weights that are 0: its file says so instead of guessing.
"$MHA" maps "$models/mistral" --ids 1,2,3,4,5,6,7,8,9,10,11,12 -q -o window.npz
"$MHA" heads - --maps window.npz --format csv | wc -l

echo "== pictures"
for more in "--heads 0.1" "--layers 0-1" "--heads 0.1 --exact"; do
    # shellcheck disable=SC2086
    "$MHA" heatmap "$models/gpt2-lm" --ids $ids $more -q -o model.png --force --labels none &&
        "$MHA" heatmap - --maps gpt2-lm.npz $more -q -o maps.png --force --labels none &&
        cmp model.png maps.png && echo "the same with $more"
done

echo "== what it refuses"
try() {
    "$MHA" heads "$@" -q
    echo "exit code $?"
}
try "$models/gpt2-lm" --maps gpt2-lm.npz
try -
try - --maps gpt2-lm.npz --ids 1,2
try - --maps gpt2-lm.npz --words
try - --maps gpt2-lm.npz --special renorm
try - --maps missing.npz
head -c 400 gpt2-lm.npz >cut.npz && try - --maps cut.npz
: >empty.npy && try - --maps empty.npy
"$MHA" maps "$models/gpt2-lm" --ids $ids --sites q -q -o q.npz && try - --maps q.npz
"$MHA" maps "$models/gpt2-lm" --ids $ids --layers 0 -q -o one.npy && try - --maps one.npy
"$MHA" tokens - --maps gpt2-lm.npz
echo "exit code $?"
