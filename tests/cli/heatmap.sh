# Figures: one head, chosen heads, a layer, the grid; formats; what the picture says. How it looks
# is tested in tests/render.
cp -r "$MHA_ROOT/tests/data/models/bert-mlm" bert && cp -r "$MHA_ROOT/tests/data/models/t5" t5
printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' the cat sat un '##aff' '##able' . >bert/vocab.txt
text='the unaffable cat sat .'
kind() {
    head -c 4 "$1" | tr -d '\211\r\n' # PNG, %PDF, <svg or <?xm
    echo " $1"
}
words() { # the text of an SVG that is one of these words, as often as it stands there
    tr '<' '\n' <"$1" | sed -n 's/^[^>]*>\([^>]*\)$/\1/p' | grep -xE "$2" | sort | uniq -c
}
"$MHA" heatmap bert --text "$text" --heads 0.1 -o one.png && kind one.png
"$MHA" heatmap bert --text "$text" --heads 0.1 -o one.pdf && kind one.pdf
"$MHA" heatmap bert --text "$text" --layers 1 -o layer.png && kind layer.png
"$MHA" heatmap bert --text "$text" --heads 0.1,1.2 -o two.png && kind two.png
"$MHA" heatmap bert --text "$text" -o grid.svg && kind grid.svg
"$MHA" heatmap bert --text "$text" --heads 0.1 -o - --format png >pipe.png && cmp one.png pipe.png
echo "== labels"
"$MHA" heatmap bert --text "$text" --heads 0.1 -o tokens.svg --width 120
words tokens.svg 'cat|un|##aff|##able|unaffable|\[CLS\]'
"$MHA" heatmap bert --text "$text" --heads 0.1 -o words.svg --width 120 --words
words words.svg 'cat|un|##aff|##able|unaffable|\[CLS\]'
"$MHA" heatmap bert --text "$text" --heads 0.1 -o spans.svg --width 120 --labels words
words spans.svg 'cat|un|##aff|##able|unaffable|\[CLS\]'
"$MHA" heatmap bert --text "$text" --heads 0.1 -o none.svg --width 120 --labels none
words none.svg 'cat|un|##aff|##able|unaffable|\[CLS\]'
"$MHA" heatmap bert --text "$text" --heads 0.1 -o part.svg --width 120 --rows 2-4 --cols 5
words part.svg 'cat|un|##aff|##able|unaffable|\[CLS\]'
echo "== exact"
"$MHA" heatmap bert --text "$text" --heads 0.1 --exact -o exact.png && kind exact.png
echo "== encoder and decoder"
"$MHA" heatmap t5 --ids 5,6,7 --heads 0.0 -o encoder.png && kind encoder.png
"$MHA" heatmap t5 --ids 5,6,7 --target-ids 0,8 -o all.png
"$MHA" heatmap t5 --ids 5,6,7 --target-ids 0,8 --kind cross -o cross.png && kind cross.png
echo "== charts of heads"
"$MHA" heads bert --text "$text" -o heads.png --sort self_mass && kind heads.png
"$MHA" heads bert --text "$text" -o bars.svg --sort self_mass --top 3 && kind bars.svg
echo "== overwriting, and wrong names"
"$MHA" heatmap bert --text "$text" --heads 0.1 -o one.png
"$MHA" heatmap bert --text "$text" --heads 0.1 -o one.png --force
"$MHA" heatmap bert --text "$text" --heads 0.1 -o x.png --colormap virdis
"$MHA" heatmap bert --text "$text" --heads 0.1 -o x.png --dpi 1
"$MHA" heatmap bert --text "$text" --heads 0.1 -o x.png --dry-run | head -3
ls
