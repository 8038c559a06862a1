# The example in the help of every command works as it stands there.
PATH=$(dirname "$MHA"):$PATH
for command in info tokens run maps heads heatmap help; do
    example=$("$MHA" help $command | sed -n '/^Example$/{n;s/^  //p;}')
    eval "$example" >out 2>&1 || { echo "exit code $?: $example"; cat out; }
    [ -s out ] || [ $command = maps ] || [ $command = heatmap ] || echo "nothing: $example"
done
rm -f out
ls
