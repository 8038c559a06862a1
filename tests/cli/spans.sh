# Answers that are stretches of a text. The table's probabilities are those of Transformers'
# question-answering pipeline in float64 (to 1e-6) on the same model and vocabulary.
cp -r "$MHA_ROOT/tests/data/models/bert-span" qa
printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' what is the capital of france '?' paris . it has \
    two million people in this river city and a tower which was built long ago by many men who came \
    from far away with '##s' '##es' seine ';' , a1 a2 >qa/vocab.txt
question="What is the capital of France?"
text="Paris is the capital. It has two million people."
echo "== the best of the second text"
"$MHA" run qa --text "$question" --pair "$text" --top 4 --format csv -q | sed -E 's/(0\.[0-9]{6})[0-9]*$/\1/'
echo "== no pair, ids, two documents"
"$MHA" run qa --text "$text" --top 1 --format csv -q | cut -d, -f 1-7
"$MHA" run qa --ids 2,5,6,7 --top 1 --format csv -q | cut -d, -f 1-7
"$MHA" run qa --text "$question" --pair "$text" --text "$question" --pair "paris" --top 1 --format csv -q | cut -d, -f 1-7
echo "== a question that is written with a special token in it; a text with one"
"$MHA" run qa --text "What is [SEP] the capital of France?" --pair "$text" --top 2 --format csv -q | sed -E 's/(0\.[0-9]{6})[0-9]*$/\1/'
"$MHA" run qa --text "$question" --pair "paris [SEP] city" --top 3 --format csv -q | sed -E 's/(0\.[0-9]{6})[0-9]*$/\1/'
echo "== the second text cut, and cut off"
"$MHA" run qa --text "$question" --pair "$text" --max-tokens 12 --top 2 --format csv -q | cut -d, -f 1-7
"$MHA" run qa --text "$question" --pair "$text" --max-tokens 8 --top 1 --format csv -q | cut -d, -f 1-7
echo "== ids alone, where the model itself looks for the question"
"$MHA" run "$MHA_ROOT/tests/data/models/big-bird-span" --ids 3,7,9,2,2,21,30,44,11,17,2 --top 3 --format csv -q | sed -E 's/(0\.[0-9]{6})[0-9]*$/\1/'
echo "== refused"
"$MHA" run qa --text "$question" --generate 3 -q
echo "exit code $?"
