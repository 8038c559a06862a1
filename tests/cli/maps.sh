# Arrays of any site: their names and shapes, one file a document, nothing half-written.
models=$MHA_ROOT/tests/data/models
list() { # names of the arrays in an .npz, in their order
    unzip -l "$1" | awk '/\.npy$/ { print $4 }' | tr '\n' ' '
    echo
}
shape() { # of one array
    unzip -p "$1" "$2.npy" | head -c 128 | tr -d '\n' | sed "s/.*'descr': '\([^']*\)'.*'shape': \(([^)]*)\).*/$2 \1 \2/"
    echo
}
"$MHA" maps "$models/bert-mlm" --ids 2,7,8,9,3 -o default.npz && list default.npz
shape default.npz enc.self.0.pattern
shape default.npz enc.self.0.heads
shape default.npz ids
"$MHA" maps "$models/bert-mlm" --ids 2,7,8,9,3 -o some.npz --heads 1.0,1.2 --sites pattern,q,resid && list some.npz
shape some.npz enc.self.1.pattern
"$MHA" maps "$models/t5" --ids 2,7,8,9,3 --target-ids 0,5 -o t5.npz --layers 1 --sites pattern,scores,q,k,v,z,head_out,embed,resid,hidden,logits && list t5.npz
shape t5.npz dec.cross.1.pattern
shape t5.npz dec.cross.1.k
shape t5.npz logits
shape t5.npz target_ids
echo "== one array"
"$MHA" maps "$models/gpt2-lm" --ids 2,7,8 --layers 0 -o one.npy && head -c 80 one.npy | tail -c 70
echo
"$MHA" maps "$models/gpt2-lm" --ids 2,7,8 -o two.npy
echo "== standard output, and a pipe"
"$MHA" maps "$models/gpt2-lm" --ids 2,7,8 -o - --format npz | cat >pipe.npz && list pipe.npz
echo "== several documents"
"$MHA" maps "$models/gpt2-lm" --ids '2,7;2,99;7,8' -o many/ && ls many
"$MHA" maps "$models/gpt2-lm" --ids '2,7;7,8' -o many/
"$MHA" maps "$models/gpt2-lm" --ids '2,7;7,8' -o many --format safetensors && ls many
echo "== overwriting"
"$MHA" maps "$models/gpt2-lm" --ids 2,7 -o one.npy --layers 0
"$MHA" maps "$models/gpt2-lm" --ids 2,7 -o one.npy --layers 0 --force && ls
