#!/bin/sh
# The main job on the bundled sample model: numbers of every head, and figures.
#   samples/demo.sh [FOLDER]     figures go to FOLDER (out/demo)
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
mha=${MHA:-build/release/mha-inspect}
out=${1:-out/demo}
mkdir -p "$out"

echo "A small decoder trained on Shakespeare: 3 layers of 4 heads."
echo
"$mha" run sample:shakespeare --text "ROMEO:" --generate 24 --sample --temperature 0.8 --seed 1
echo
echo "What its heads do on a sentence said three times:"
"$mha" heads sample:shakespeare --file samples/inputs/repeat.txt --sort prev_mass --top 12
"$mha" heads sample:shakespeare --file samples/inputs/repeat.txt -o "$out/heads.csv" --force -q
"$mha" heatmap sample:shakespeare --file samples/inputs/repeat.txt --width 130 \
    -o "$out/grid.png" --force -q
"$mha" heatmap sample:shakespeare --text "To be, or not to be, that is the question" --heads 0.0 \
    -o "$out/previous-token.pdf" --force -q
"$mha" heatmap sample:shakespeare --text "To be, or not to be, that is the question" --heads 1.3 \
    -o "$out/head-1.3.svg" --force -q
echo
echo "Head 0.0 looks at the previous token; heads 1.0 and 1.3 at what followed the same token before"
echo "(induction: the stripes in row 1 of the grid). The figures:"
for f in "$out"/*.*; do
    echo "  $f"
done
