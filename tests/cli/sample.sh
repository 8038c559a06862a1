# The bundled model: text that one can read, whole characters in labels, and where it is looked for.
"$MHA" run sample:shakespeare --text 'ROMEO:' --generate 20 --format json | grep -c '"text": "'
"$MHA" tokens sample:shakespeare --text '東京' --format csv | cut -d, -f 1,4-
"$MHA" heatmap sample:shakespeare --text 'a 東京 b' --heads 0.0 -o bytes.svg --width 150
for label in 東 京 a b; do
    tr '<' '\n' <bytes.svg | sed -n 's/^[^>]*>\([^>]*\)$/\1/p' | grep -cx "$label"
done
mkdir models && cp -r "$MHA_ROOT/samples/models/shakespeare" models/mine
MHA_SAMPLES=models "$MHA" info sample:mine | head -2
MHA_SAMPLES=models "$MHA" info sample:mien
MHA_SAMPLES=models "$MHA" info sample:../models/mine
MHA_SAMPLES=none "$MHA" info sample:mine
