# Tokens with global attention: by list, by the model's own choice, and where they are wrong.
cd "$MHA_ROOT/tests/data/models" || exit 1
entropy() { # of the first head
    "$MHA" heads "$@" --format csv | sed -n 2p | cut -c1-20
}
entropy longformer-mlm --ids 5,6,7,8,9,10,11,12,13,14
entropy longformer-mlm --ids 5,6,7,8,9,10,11,12,13,14 --global 0,7
entropy longformer-class --ids 5,6,7,8,9,10,11,12,13,14
entropy longformer-class --ids 5,6,7,8,9,10,11,12,13,14 --global 0
"$MHA" heads longformer-mlm --ids 5,6,7 --global 0,7
echo "exit $?"
"$MHA" heads longformer-mlm --ids 5,6,7 --global x
echo "exit $?"
"$MHA" heads bert-mlm --ids 5,6,7 --global 0
echo "exit $?"
"$MHA" heads longformer-span --ids 5,6,7
echo "exit $?"
