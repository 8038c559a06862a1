# Checkpoints that torch.save wrote: the same answers as from safetensors, and nothing in them is run.
data=$MHA_ROOT/tests/data
heads() {
    "$MHA" heads "$1" --ids 2,7,8,9,10 --format csv -q
}
echo "== both forms, and shards"
heads "$data/models/gpt2-lm" >safetensors.csv
for form in zip stream shards; do
    heads "$data/torch/gpt2-$form" | cmp - safetensors.csv && echo "$form: the same"
done
"$MHA" info "$data/torch/gpt2-zip" | grep -i format
echo "== pruned, it is safetensors"
"$MHA" prune "$data/torch/gpt2-zip" --heads 0.1 --mode mask -q -o torch
"$MHA" prune "$data/models/gpt2-lm" --heads 0.1 --mode mask -q -o plain
cmp torch/model.safetensors plain/model.safetensors && echo "the same"
"$MHA" prune "$data/torch/gpt2-shards" --heads 0.1 --mode mask -q -o shards >/dev/null
ls shards
heads torch >torch.csv && heads shards | cmp - torch.csv && echo "the same"
echo "== what would run a command elsewhere"
mkdir evil && cp "$data/torch/gpt2-zip/config.json" evil && cp "$data/torch/evil.bin" evil/pytorch_model.bin
heads evil
echo "exit code $?"
ls executed 2>/dev/null
mkdir cut && cp "$data"/torch/gpt2-shards/* cut && head -c 20000 cut/pytorch_model-00002-of-00002.bin >x &&
    mv x cut/pytorch_model-00002-of-00002.bin
heads cut
echo "exit code $?"
