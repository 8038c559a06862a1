# Every exit code of the contract, with the one line that comes with it.
cd "$MHA_ROOT/tests/data/models" || exit 1
out=$OLDPWD
try() {
    want=$1
    shift
    "$MHA" "$@"
    code=$?
    [ $code -eq "$want" ] || echo "exit code $code, not $want: $*"
}
echo "== 0"
try 0 run gpt2-lm --ids 1,2,3 --top 1 --format csv -o /dev/null

echo "== 1: could not do it"
echo old >"$out/table.csv"
try 1 heads bert-mlm --ids 1,2 -o "$out/table.csv" 2>&1 | sed "s#$out/##"
cat "$out/table.csv"
try 1 heads bert-mlm --ids 1,2 --format csv -o /dev/full
try 1 heads bert-mlm --ids 1,2 --format csv >/dev/full
try 1 heads bert-mlm --ids 1,2 -o "$out/none/table.csv" 2>&1 | sed "s#$out/##"
try 1 heads bert-mlm --ids 1,2 --memory 1K 2>&1 | sed 's/[0-9][0-9]* bytes/N bytes/'
try 1 run gpt2-lm --ids 1,2,3 --generate 20 --memory 10K 2>&1 | sed 's/[0-9][0-9]* bytes/N bytes/'
try 1 importance gpt2-lm --ids 1,2,3 --memory 10K 2>&1 | sed 's/[0-9][0-9]* bytes/N bytes/'
try 1 heads bert-mlm --ids '1,99;;2,99'
try 1 maps bert-base --ids 1,2 --sites logits -o "$out/logits.npz"
try 1 run bert-mlm --ids 1,2 --generate 3

try 1 curve gpt2-lm --ids 1,2,3 --steps 1 -q -o "$out/none/curve.png" 2>&1 | sed "s#$out/##"
try 1 curve gpt2-lm --ids 1,2,3 --steps 1 -q --format png -o /dev/full
try 1 prune gpt2-lm --heads 0.0 -o "$out/none/pruned" 2>&1 | sed "s#$out/##"

echo "== 3: bad or unsupported model or input"
try 3 info none
try 3 info sample:nothing 2>&1 | sed "s/no sample.*/no sample .../"
mkdir "$out/broken" "$out/other"
head -c 1000 gpt2-lm/model.safetensors >"$out/broken/model.safetensors"
cp gpt2-lm/config.json "$out/broken"
cp gpt2-lm/model.safetensors "$out/other"
echo '{"model_type": "rnn"}' >"$out/other/config.json"
try 3 info "$out/broken" 2>&1 | sed "s#$out/##"
try 3 info "$out/other" 2>&1 | sed "s#$out/##; s/known: .*/known: .../"
try 3 heads bert-mlm --ids 1,61
try 3 heads bert-mlm --ids ''
try 3 heads bert-mlm --ids 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33,34,35,36,37,38
try 3 heads bert-mlm --text hello
try 3 heads bert-mlm --file none.txt
try 3 heads bert-mlm --file config.xyz
: >"$out/empty.txt"
try 3 heads bert-mlm --file "$out/empty.txt" 2>&1 | sed "s#$out/##"
try 3 info gpt2-lm --limit tensors=3

echo "== 130: interrupted"
# without the rules that end its texts early
cp -r llama-gqa "$out/endless" && rm -f "$out/endless/generation_config.json"
timeout --preserve-status -s INT 1 "$MHA" run "$out/endless" --ids 1 --generate 200000 -o "$out/text.csv"
echo $?
rm -r "$out/endless"
for command in 'importance --method shapley --draws 10000' 'curve --orders 100000'; do
    timeout --preserve-status -s INT 1 "$MHA" ${command%% *} gpt2-lm --ids '1,2,3,4,5,6,7,8;5,6,7,8' \
        -q ${command#* } -o "$out/long.json"
    echo $?
    [ ! -e "$out/long.json" ] || echo half-written
done
rm -f "$out"/long.json.*.partial
# timeout(1) sends a signal to the process and to its group: the second does not cut the saving short
"$MHA" curve gpt2-lm --ids '1,2,3,4,5,6,7,8;5,6,7,8' -q --orders 100000 -o "$out/twice.json" &
sleep 2
kill -INT $! && kill -TERM $!
wait $!
echo $?
(cd "$out" && ls twice.json*)
rm -f "$out"/twice.json.*.partial
cd "$out" && ls
