# The text whose attention `maps --generate` writes is the text that `run --generate` writes, token by
# token: two documents of every kind of model that generates, greedily and drawn.
models=$MHA_ROOT/tests/data/models
prompts='5,6,7,8;9,8' # and eight tokens on: past the windows of Mistral and Gemma
array() { # FILE.safetensors NAME: an array of int64
    header=$(od -An -t u8 -N 8 "$1" | tr -d ' ')
    range=$(head -c $((8 + header)) "$1" | tail -c "$header" |
        sed -n 's/.*"'"$2"'":{"dtype":"I64",[^}]*"data_offsets":\[\([0-9]*\),\([0-9]*\)\].*/\1 \2/p')
    from=${range% *} to=${range#* }
    od -An -v -t d8 -w8 -j $((8 + header + from)) -N $((to - from)) "$1" | tr -d ' ' | paste -s -d ' ' -
}
written() { # MODEL OPTION...: the texts as run has them, each behind what it went on from
    config=$models/$1/config.json
    start=
    [ ! -f "$config" ] || start=$(sed -n 's/^ *"decoder_start_token_id": \([0-9]*\),*$/\1/p' "$config")
    name=$1 && shift
    "$MHA" run "$models/$name" --ids "$prompts" --format csv -q "$@" | sed 1d | cut -d, -f2 >new
    if [ -n "$start" ]; then
        sed "s/^/$start /" new
    else
        echo "$prompts" | tr ';,' '\n ' | paste -d ' ' - new
    fi
}
mapped() { # MODEL OPTION...: the same as the arrays of maps say
    name=$1 && shift
    rm -rf out
    "$MHA" maps "$models/$name" --ids "$prompts" --layers 0 --format safetensors -q -o out/ "$@"
    for file in out/0000.safetensors out/0001.safetensors; do
        ids=$(array "$file" target_ids)
        echo "${ids:-$(array "$file" ids)}"
    done
}
compare() { # NAME MODEL OPTION...
    kind=$1 && shift
    written "$@" >"$kind"
    mapped "$@" >again
    if cmp -s "$kind" again && [ "$(wc -w <new)" -ge 4 ]; then
        printf ' %s the same' "$kind"
    else
        printf ' %s: run says %s, maps %s' "$kind" "$(paste -s -d ';' "$kind")" "$(paste -s -d ';' again)"
    fi
}
texts=0 differ=0
for model in gpt2-lm gpt2-f16 gpt2-lm.gguf gpt2-old bigcode bloom bloom.gguf falcon falcon-alibi falcon-groups \
    gemma gemma2 gemma3 gemma3.gguf gpt-neo gptj llama-bf16 llama-gqa llama-gqa-sharded llama-quant.gguf \
    llama-rope3 llama-yarn mistral mistral-full neox olmo2 opt phi phi3 phi3-long qwen2 qwen3 smollm3 \
    bart marian mbart t5 t5-gated t5-resaved; do
    printf '%s:' "$model"
    compare greedy "$model" --generate 8
    compare drawn "$model" --generate 8 --sample --seed 3 --temperature 1.5
    echo
    texts=$((texts + 1))
    cmp -s greedy drawn || differ=$((differ + 1))
done
[ $((2 * differ)) -gt $texts ] && echo "most drawn texts are not the greedy ones"
