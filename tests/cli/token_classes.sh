# A class for every token. The probabilities are those of Transformers' token-classification pipeline
# in float64 (to 1e-6) on the same model and vocabulary; as there, the tokens that a template adds
# have no rows.
cp -r "$MHA_ROOT/tests/data/models/bert-token" tagger
printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' what is the capital of france '?' paris . it has \
    two million people in this river city and a tower which was built long ago by many men who came \
    from far away with '##s' '##es' seine ';' , a1 a2 >tagger/vocab.txt
sed -i 's/"LABEL_1"/"B-LOC"/; s/"0": "LABEL_0"/"0": "O"/; s/"LABEL_0": 0/"O": 0/' tagger/config.json
six_digits() { sed -E 's/(0\.[0-9]{6})[0-9]*/\1/g'; }
echo "== the likeliest class of each token"
"$MHA" run tagger --text "Paris has rivers." --top 1 --format csv -q | six_digits
echo "== all classes, as JSON has them"
"$MHA" run tagger --text "paris" --format json -q | six_digits
echo "== two documents, two texts, ids"
"$MHA" run tagger --text "paris" --pair "it has" --text "two men" --pair "a tower" --top 1 --format csv -q | cut -d, -f 1-3,5,7-
"$MHA" run tagger --ids 2,12,15,3 --top 1 --format csv -q | cut -d, -f 1-3,5,7-
echo "== what was written as a special token is a token of the text"
"$MHA" run tagger --text "paris [SEP] it" --top 1 --format csv -q | cut -d, -f 1-3,5,7-
