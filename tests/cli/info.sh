# What a model is, as text, CSV and JSON; its program and its tensors.
cd "$MHA_ROOT/tests/data/models" || exit 1
"$MHA" info bert-mlm
"$MHA" info llama-gqa.gguf
"$MHA" info t5 --format csv
"$MHA" info gpt2-lm --format json
"$MHA" info gpt2-lm --program
"$MHA" info gpt2-lm --tensors | head -5
"$MHA" info bert-class --hash | grep sha256
"$MHA" info bert-mlm --dry-run
