# Graphs: the bundled GAT from node classes to gradients, and what is refused.
karate="$MHA_ROOT/samples/inputs/karate.json"
models="$MHA_ROOT/tests/data/models"
echo "== classes of nodes"
"$MHA" run sample:karate --graph "$karate" --top 1 --format csv | sed -n '1,3p;35p' | cut -d, -f 1-5
echo "== heads: over neighbourhoods; positions mean nothing"
"$MHA" heads sample:karate --graph "$karate" --heads graph.self.0.0 --format csv |
    sed "s/\(\.[0-9][0-9][0-9]\)[0-9]*/\1/g"
echo "== arrays"
"$MHA" maps sample:karate --graph "$karate" --sites pattern,logits -o maps.npz
"$MHA" maps sample:karate --graph "$karate" --layers 1 -o pattern.npy && wc -c <pattern.npy
"$MHA" maps sample:karate --graph "$karate" --graph "$karate" -o both/ && ls both
echo "== importance: every node whose class is known"
"$MHA" importance sample:karate --graph "$karate" --format csv | cut -d, -f 1-4 | sed -n '1p;9p'
echo "== what does not fit"
"$MHA" run sample:karate --text "two clubs"
"$MHA" run "$models/gat" --graph "$karate"
"$MHA" run "$models/gpt2-lm" --graph "$karate"
"$MHA" heads sample:karate --graph "$karate" --special renorm
"$MHA" run sample:karate --graph "$karate" --max-tokens 5
echo '{"num_nodes": 2, "x": [[1], [2]], "edge_index": [[0], [2]]}' >broken.json
"$MHA" run sample:karate --graph broken.json
"$MHA" run sample:karate --graph none.json
echo $?
echo "== pictures: text is text, every node and a title for each head"
"$MHA" heatmap sample:karate --graph "$karate" --heads 0.0 -o one.svg --caption one.txt && cat one.txt
grep -c '>33</text>' one.svg
"$MHA" heatmap sample:karate --graph "$karate" -o all.svg && grep -c '>[01]\.[0-3]</text>' all.svg
"$MHA" heatmap sample:karate --graph "$karate" --heads 1.2 --labels none -o bare.svg
grep -c '>33</text>' bare.svg
"$MHA" heatmap sample:karate --graph "$karate" -o one.pdf && head -c 4 one.pdf && echo
"$MHA" heatmap sample:karate --graph "$karate" --exact -o exact.png
"$MHA" heatmap sample:karate --graph "$karate" --rows 0-3 -o rows.png
"$MHA" heatmap sample:karate --graph "$karate" --graph "$karate" -o two.png
