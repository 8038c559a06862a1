# Completion of mha-inspect for bash.
_mha_inspect()
{
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} options
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($(compgen -W "info tokens run maps heads heatmap importance curve prune attribute help" -- "$word"))
        return
    fi
    case $before in
    --text) return ;;
    --pair) return ;;
    --target) return ;;
    --file) COMPREPLY=($(compgen -f -- "$word")); return ;;
    --ids) return ;;
    --target-ids) return ;;
    --ids-file) COMPREPLY=($(compgen -f -- "$word")); return ;;
    --graph) COMPREPLY=($(compgen -f -- "$word")); return ;;
    --maps) COMPREPLY=($(compgen -f -- "$word")); return ;;
    --image) COMPREPLY=($(compgen -f -- "$word")); return ;;
    --features) COMPREPLY=($(compgen -f -- "$word")); return ;;
    --max-docs) return ;;
    --max-tokens) return ;;
    --global) return ;;
    --generate) return ;;
    --beam) return ;;
    --temperature) return ;;
    --top) return ;;
    --sites) return ;;
    --layers) return ;;
    --heads) return ;;
    --stack) COMPREPLY=($(compgen -W "enc dec graph" -- "$word")); return ;;
    --kind) COMPREPLY=($(compgen -W "self cross" -- "$word")); return ;;
    --special) COMPREPLY=($(compgen -W "keep mass renorm" -- "$word")); return ;;
    --sort) return ;;
    --method) return ;;
    --loss) COMPREPLY=($(compgen -W "auto next masked target class logit-diff" -- "$word")); return ;;
    --logit-diff) return ;;
    --mask-rate) return ;;
    --unit) COMPREPLY=($(compgen -W "head kv-group layer" -- "$word")); return ;;
    --reference) COMPREPLY=($(compgen -f -- "$word")); return ;;
    --draws) return ;;
    --bootstrap) return ;;
    --ci) return ;;
    --keep) return ;;
    --fraction) return ;;
    --budget) return ;;
    --scores) COMPREPLY=($(compgen -f -- "$word")); return ;;
    --by) return ;;
    --eval) COMPREPLY=($(compgen -f -- "$word")); return ;;
    --steps) return ;;
    --orders) return ;;
    --mode) COMPREPLY=($(compgen -W "slice mask" -- "$word")); return ;;
    --rows) return ;;
    --cols) return ;;
    --labels) COMPREPLY=($(compgen -W "tokens words none" -- "$word")); return ;;
    --scale) COMPREPLY=($(compgen -W "linear log clip" -- "$word")); return ;;
    --colormap) return ;;
    --width) return ;;
    --dpi) return ;;
    --font) return ;;
    --font-size) return ;;
    --title) return ;;
    --caption) COMPREPLY=($(compgen -f -- "$word")); return ;;
    -o) COMPREPLY=($(compgen -f -- "$word")); return ;;
    --format) return ;;
    --threads) return ;;
    --isa) COMPREPLY=($(compgen -W "ref avx2 avx512" -- "$word")); return ;;
    --seed) return ;;
    --memory) return ;;
    --family) COMPREPLY=($(compgen -f -- "$word")); return ;;
    --limit) return ;;
    --progress) COMPREPLY=($(compgen -W "auto always never" -- "$word")); return ;;
    esac
    case ${COMP_WORDS[1]} in
    info) options="--program --tensors --hash -o --format --force --threads --isa --seed --memory --family --limit --dry-run --progress -q -v --version --help" ;;
    tokens) options="--text --pair --target --file --ids --target-ids --ids-file --graph --image --features --max-docs --max-tokens --no-special --global -o --format --force --threads --isa --seed --memory --family --limit --dry-run --progress -q -v --version --help" ;;
    run) options="--text --pair --target --file --ids --target-ids --ids-file --graph --image --features --max-docs --max-tokens --no-special --global --generate --beam --sample --temperature --top -o --format --force --threads --isa --seed --memory --family --limit --dry-run --progress -q -v --version --help" ;;
    maps) options="--text --pair --target --file --ids --target-ids --ids-file --graph --image --features --max-docs --max-tokens --no-special --global --generate --sample --temperature --sites --layers --heads --stack --kind --words -o --format --force --threads --isa --seed --memory --family --limit --dry-run --progress -q -v --version --help" ;;
    heads) options="--text --pair --target --file --ids --target-ids --ids-file --graph --maps --image --features --max-docs --max-tokens --no-special --global --top --layers --heads --stack --kind --words --special --per-document --by-layer --sort --bootstrap --ci --colormap --width --dpi --font --font-size --title --caption --dark -o --format --force --threads --isa --seed --memory --family --limit --dry-run --progress -q -v --version --help" ;;
    heatmap) options="--text --pair --target --file --ids --target-ids --ids-file --graph --maps --image --features --max-docs --max-tokens --no-special --global --generate --sample --temperature --layers --heads --stack --kind --words --special --rows --cols --labels --scale --colormap --exact --width --dpi --font --font-size --title --caption --dark -o --format --force --threads --isa --seed --memory --family --limit --dry-run --progress -q -v --version --help" ;;
    importance) options="--text --pair --target --file --ids --target-ids --ids-file --graph --image --features --max-docs --max-tokens --no-special --global --top --layers --heads --stack --kind --per-document --by-layer --sort --method --loss --logit-diff --mask-rate --unit --reference --draws --bootstrap --ci --resume --colormap --width --dpi --font --font-size --title --caption --dark -o --format --force --threads --isa --seed --memory --family --limit --dry-run --progress -q -v --version --help" ;;
    curve) options="--text --pair --target --file --ids --target-ids --ids-file --graph --image --features --max-docs --max-tokens --no-special --global --layers --heads --stack --kind --method --loss --logit-diff --mask-rate --unit --reference --draws --bootstrap --ci --scores --by --eval --steps --rescore --orders --resume --width --dpi --font --font-size --title --caption --dark -o --format --force --threads --isa --seed --memory --family --limit --dry-run --progress -q -v --version --help" ;;
    prune) options="--text --pair --target --file --ids --target-ids --ids-file --graph --image --features --max-docs --max-tokens --no-special --global --layers --heads --stack --kind --loss --logit-diff --mask-rate --unit --reference --keep --fraction --budget --scores --by --mode --fold-mean -o --force --threads --isa --seed --memory --family --limit --dry-run --progress -q -v --version --help" ;;
    attribute) options="--text --pair --target --file --ids --target-ids --ids-file --graph --image --features --max-docs --max-tokens --no-special --global --top --method --labels --scale --colormap --exact --width --dpi --font --font-size --title --caption --dark -o --format --force --threads --isa --seed --memory --family --limit --dry-run --progress -q -v --version --help" ;;
    help) options="--version --help" ;;
    *) return ;;
    esac
    case $word in
    -*) COMPREPLY=($(compgen -W "$options" -- "$word")) ;;
    *) COMPREPLY=($(compgen -f -- "$word")) ;;
    esac
}
complete -o filenames -F _mha_inspect mha-inspect
