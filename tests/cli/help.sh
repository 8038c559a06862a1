# The overview, the help of a command by both ways, and every topic, whole.
"$MHA" help
"$MHA" help heads >by_help
"$MHA" heads --help | diff by_help - && cat by_help
"$MHA" --help | head -1
"$MHA" --version
for topic in inputs selection arrays formats exit environment; do
    echo "== $topic"
    "$MHA" help $topic
done
