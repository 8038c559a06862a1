# Pictures and spectra: prepared as the checkpoint says, or given as they are fed.
cp -r "$MHA_ROOT/tests/data/models/vit-class" vit && cp -r "$MHA_ROOT/tests/data/models/whisper" . &&
    cp "$MHA_ROOT"/tests/data/pictures/*.png "$MHA_ROOT"/tests/data/pictures/*.jpg \
        "$MHA_ROOT"/tests/data/pictures/*.npy . || exit 1
round() {
    awk -F, -v OFS=, '{ for (i = 1; i <= NF; i++) if ($i ~ /^-?[0-9]+\.[0-9e-]+$/) $i = sprintf("%.4f", $i); print }'
}
run() {
    "$MHA" run "$@" --format csv | round
}
echo "== pixels as they are"
run vit --features pixels.npy
echo "== a picture needs the checkpoint's recipe"
"$MHA" run vit --image scene.png
echo '{"image_processor_type": "ViTImageProcessor", "size": {"height": 14, "width": 14}}' >vit/preprocessor_config.json
run vit --image scene.png --image scene.jpg --top 1
"$MHA" run vit --image scene.png --format json | grep -c '"label"'
echo "== attention over the picture: from the class token, a patch, the mean of some"
"$MHA" heatmap vit --image scene.png -o all.png --caption all.txt && cat all.txt && echo
"$MHA" heatmap vit --image scene.jpg --heads 1.2 --rows 5 -o patch.svg --caption patch.txt && cat patch.txt && echo
"$MHA" heatmap vit --image scene.png --heads '0.*' --rows 1-9 -o mean.pdf --caption mean.txt && cat mean.txt && echo
"$MHA" heatmap vit --image scene.png --heads 0.1 --cols 0-9 -o plain.png --caption plain.txt && cat plain.txt && echo
"$MHA" heatmap vit --image scene.png --rows 10 -o none.png
"$MHA" heatmap vit --image scene.png --image grey.png -o none.png
"$MHA" heatmap vit --image scene.png -o none.png --dry-run | head -1
echo '{"image_processor_type": "ViTImageProcessor", "size": 15}' >vit/preprocessor_config.json
"$MHA" run vit --image scene.png
echo '{"image_processor_type": "MoonImageProcessor"}' >vit/preprocessor_config.json
"$MHA" run vit --image scene.png
echo "== wrong inputs"
"$MHA" run vit --text hello
"$MHA" run vit --features spectrum.npy
"$MHA" run vit --image pixels.npy
"$MHA" run vit --image nowhere.png
"$MHA" run vit --features pixels.npy --max-tokens 3
head -c 900 scene.png >cut.png
"$MHA" run vit --image cut.png
"$MHA" run "$MHA_ROOT/tests/data/models/bert-mlm" --features pixels.npy
echo "== speech: greedy, and next tokens after a prompt"
run whisper --features spectrum.npy --generate 14
run whisper --features spectrum.npy --generate 14 --beam 3
run whisper --features spectrum.npy --target-ids 51,23 --top 2
echo "== rows stand where tokens would; class tokens are special"
"$MHA" tokens vit --features pixels.npy --format csv | head -3
"$MHA" heads vit --features pixels.npy --format csv | cut -d, -f1-5 | head -3
"$MHA" heads whisper --features spectrum.npy --target-ids 51,4,5 --format csv | cut -d, -f1-5 | sed -n '2p;12p;22p'
"$MHA" heatmap vit --features pixels.npy --heads 1.2 -o head.png && echo drawn
"$MHA" maps vit --features pixels.npy --sites pattern,logits -o maps.npz && echo written
