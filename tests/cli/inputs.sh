# Where documents come from, and what happens to those that the model cannot take.
cp -r "$MHA_ROOT/tests/data/models/bert-mlm" bert && cp -r "$MHA_ROOT/tests/data/models/t5" t5
cat >bert/vocab.txt <<'END'
[PAD]
[UNK]
[CLS]
[SEP]
[MASK]
the
cat
dog
sat
on
un
##aff
##able
a
mat
.
END
tokens() {
    "$MHA" tokens "$@" --format csv
}
echo "== text, pair, unknown words"
tokens bert --text 'The unaffable cat sat.' --pair 'on a zebra'
echo "== without special tokens"
tokens bert --text 'the [MASK] sat' --no-special
echo "== cut: the last special token stays"
tokens bert --text 'the cat sat on the mat .' --max-tokens 5
echo "== ids as they are, several documents"
tokens bert --ids '2,5,10,11,12,3; 6' --text 'the dog' --max-docs 2
echo "== files"
printf 'the cat sat\n\nthe dog\n' >lines.txt
printf 'text\tpair\tlabel\nthe cat\ta dog\tx\na mat\t\ty\n' >table.tsv
printf '{"text": "the cat"}\n{"text": "a dog", "pair": "on"}\n' >lines.jsonl
printf '[[2, 5, 3], [2, 6, 3]]' >ids.json
printf '{"ids": [[2, 5, 3, 0], [2, 6, 7, 3]], "attention_mask": [[1, 1, 1, 0], [1, 1, 1, 1]]}' >padded.json
for file in lines.txt table.tsv lines.jsonl; do
    tokens bert --file $file | cut -d, -f1,3 | tr '\n' ' '
    echo
done
for file in ids.json padded.json; do
    tokens bert --ids-file $file | cut -d, -f1,2 | tr '\n' ' '
    echo
done
echo "== skipped, counted and named"
{
    for i in 1 2 3 4 5 6 7; do echo "the the the the the the the the the the the the the the the the the the the the the the the the the the the the the the the the the the the the"; done
    echo 'a dog'
} >long.txt
tokens bert --file long.txt | wc -l
tokens bert --file long.txt -v | wc -l
"$MHA" tokens bert --file long.txt -q --format json | grep '"input"'
printf '[[2, 5, 3], [2, 99, 3]]' >outside.json
tokens bert --ids-file outside.json | tail -n 1
echo "== padding on either side changes nothing"
cp -r "$MHA_ROOT/tests/data/models/gpt2-lm" gpt2
printf '[[2, 7, 8, 9, 10]]' >plain.json
printf '{"ids": [[0, 0, 0, 2, 7, 8, 9, 10]], "attention_mask": [[0, 0, 0, 1, 1, 1, 1, 1]]}' >left.json
printf '{"ids": [[2, 7, 8, 9, 10, 0]], "attention_mask": [[1, 1, 1, 1, 1, 0]]}' >right.json
for command in heads importance run; do
    for file in plain left right; do
        "$MHA" $command gpt2 --ids-file $file.json --format json >$command.$file
    done
    cmp $command.plain $command.left && cmp $command.plain $command.right && echo $command
done
echo "== an empty text"
tokens bert --text ''
echo $?
tokens bert --text '   '
echo $?
echo "== the decoder's side"
tokens t5 --ids 5,6,7 --target-ids 0,8
tokens t5 --ids '5,6;7' --target-ids '0;0,8'
