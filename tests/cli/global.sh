# Tokens with global attention: by list, by the model's own choice, and where they are wrong.
cd "$MHA_ROOT/tests/data/models" || exit 1
"$MHA" heads longformer-mlm --ids 5,6,7,8,9,10,11,12,13,14 --format csv | head -2
"$MHA" heads longformer-mlm --ids 5,6,7,8,9,10,11,12,13,14 --global 0,7 --format csv | head -2
"$MHA" heads longformer-class --ids 5,6,7,8,9,10,11,12,13,14 --format csv | head -2
"$MHA" heads longformer-class --ids 5,6,7,8,9,10,11,12,13,14 --global 0 --format csv | head -2
"$MHA" heads longformer-mlm --ids 5,6,7 --global 0,7
echo "exit $?"
"$MHA" heads longformer-mlm --ids 5,6,7 --global x
echo "exit $?"
"$MHA" heads bert-mlm --ids 5,6,7 --global 0
echo "exit $?"
"$MHA" heads longformer-span --ids 5,6,7
echo "exit $?"
