# The model's own answers: tables of every kind. Numbers are rounded: their last digits are the
# machine's.
cp -r "$MHA_ROOT/tests/data/models/." . && cd "$PWD" || exit 1
round() {
    awk -F, -v OFS=, '{ for (i = 1; i <= NF; i++) if ($i ~ /^-?[0-9.]+(e-?[0-9]+)?$/ && $i ~ /[.e]/) $i = sprintf("%.4f", $i); print }'
}
run() {
    "$MHA" run "$@" --format csv | round
}
echo "== next tokens"
run gpt2-lm --ids '1,2,3;4' --top 3
run llama-gqa --ids 1,2,3 --top 2
echo "== a decoder that reads an encoder: from its start token, and after a target"
run t5 --ids 1,2,3 --top 2
run t5 --ids 1,2,3 --target-ids 0,33 --top 2
echo "== classes with their labels"
run bert-class --ids 1,2,3
run gpt2-class --ids 1,2,3 --top 1
echo "== masks: every position where no tokenizer names the mask token"
run bert-mlm --ids 1,2 --top 1
printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' the cat sat >bert-mlm/vocab.txt
run bert-mlm --text 'the [MASK] sat [MASK]' --top 2
run bert-mlm --text 'the cat sat'
echo $?
echo "== generation, greedy and drawn"
run gpt2-lm --ids '1,2,3;4' --generate 5
run llama-gqa --ids 1,2,3 --generate 8 --sample --temperature 2 --seed 1 >one
run llama-gqa --ids 1,2,3 --generate 8 --sample --temperature 2 --seed 1 | diff one - && echo same
run llama-gqa --ids 1,2,3 --generate 8 --sample --temperature 2 --seed 2 | diff -q one - >/dev/null || echo other
run llama-gqa --ids 1,2,3 --generate 8 >greedy
run llama-gqa --ids 1,2,3 --generate 8 --sample --top 1 | diff greedy - && echo greedy
run bert-mlm --ids 1 --generate 3
run gpt2-lm --ids 1 --generate 100 | awk -F, 'NR == 2 { print split($2, ids, " "), "tokens" }'
echo "== encoder-decoders write unless next tokens are asked for; the texts are the reference's"
run marian --ids 5,6,7,0
run marian --ids '5,6,7,0;9,0' --beam 4
run t5 --ids 1,2,3 --generate 3 --beam 2
"$MHA" run gpt2-lm --ids 1 --beam 2
"$MHA" run marian --ids 5 --beam 2 --sample
"$MHA" run marian --ids 5 --target-ids 58 --beam 2
echo "== a classifier with a decoder feeds it the text shifted right, and reads its last end token"
run bart-class --ids 5,6,7,2
run bart-class --ids 5,6,7,2 --target-ids 2,5,6,7
"$MHA" run bart-class --ids 5,6,7
echo "== embeddings: pooled as the checkpoint says"
run bert-base --ids '1,2,3;4,5' --top 3
mkdir bert-base/1_Pooling
echo '[{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
 {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
 {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}]' \
    >bert-base/modules.json
echo '{"pooling_mode_cls_token": false, "pooling_mode_mean_tokens": true}' >bert-base/1_Pooling/config.json
run bert-base --ids 1,2,3 --top 3
"$MHA" run bert-base --ids 1,2,3 --format csv | awk -F, 'NR > 1 { sum += $3 * $3 } END { printf "%.6f\n", sum }'
echo '{"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false}' >bert-base/1_Pooling/config.json
run bert-base --ids 1,2,3 --top 3
echo '{"pooling_mode_weightedmean_tokens": true}' >bert-base/1_Pooling/config.json
run bert-base --ids 1,2,3
"$MHA" run bert-base --ids 1,2 -o logits.npy
rm -r bert-base/1_Pooling bert-base/modules.json
"$MHA" run bert-base --ids '1,2;3' -o embedding.npy && wc -c <embedding.npy
"$MHA" run bert-mlm --ids 1,2 -o embedding.npz
