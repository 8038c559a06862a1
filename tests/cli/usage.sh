# Wrong usage: exit code 2, one line, and the nearest name where a name was wrong.
cd "$MHA_ROOT/tests/data/models" || exit 1
model=bert-mlm
try() {
    "$MHA" "$@"
    code=$?
    [ $code -eq 2 ] || echo "exit code $code: $*"
}
try
try heatmpa "$model"
try --versoin
try info
try info "$model" --programm
try info "$model" --program=1
try info "$model" --dpi 300
try info "$model" --program --tensors
try info "$model" other
try info "$model" -o
try info "$model" --limit tensor=1
try info "$model" --limit tensors
try info "$model" --limit tensors=0
try info "$model" --isa avx
try info "$model" --format png
try info "$model" -o table.xyz
try info "$model" --threads two
try heads "$model"
try heads "$model" --ids 1,x
try heads "$model" --ids "1 2"
try heads "$model" --pair B
try heads "$model" --ids 1 --pair B
try heads "$model" --text A --pair B --pair C
try heads "$model" --ids 1,2 --target-ids 0
try heads "$model" --ids 1,2 --layers 2
try heads "$model" --ids 1,2 --layers a
try heads "$model" --ids 1,2 --heads 0
try heads "$model" --ids 1,2 --heads 0.3
try heads "$model" --ids 1,2 --heads enc.cross.0.0
try heads "$model" --ids 1,2 --heads 0.0-9
try heads "$model" --ids 1,2 --layers 0-9
try heads "$model" --ids 1,2 --layers 0 --heads 1.0
try heads "$model" --ids 1,2 --sort entropi
try heads "$model" --ids 1,2 --memory 5X
try heads "$model" --ids 1,2 --by-layer --per-document
try heads "$model" --ids 1,2 --words
try maps "$model" --ids 1,2
try maps "$model" --ids 1,2 -o x.npz --sites patern
try maps "$model" --ids 1,2 -o x.npz --sites scores --words
try maps "$model" --ids '1,2;3' -o x.npz
try maps "$model" --ids 1,2 -o x.npy
try run "$model" --ids 1,2 --sample
try heads "$model" --ids 1,2 --caption x.txt
try heatmap "$model" --ids 1,2
try heatmap "$model" --ids '1,2;3' -o x.png
try heatmap "$model" --ids 1,2 -o x.pdf --exact --heads 0.0
try heatmap "$model" --ids 1,2 -o x.png --exact
try heatmap "$model" --ids 1,2 -o x.png --heads 0.0 --rows 2-1
try heatmap "$model" --ids 1,2 -o x.png --heads 0.0 --rows 5
try help haeds

