"""Speed of log reading on a generated log in the proportions of a busy server.

    python benchmarks/log_speed.py [--size-mb 1000] [--runs 3] [--dir DIR] [--gzip] [--growth 10]
                                   [--wrapper docker-json|docker-logs-t|compose|cri|kubectl|ray]

Lines: 45 % access, 40 % request ids, 12 % requests with prompts, 3 % stats; with start-up lines,
aborts, errors and refused requests among them. Measures whole processes, from start to rows, beside
`rg -c` with the expressions one would search for, a plain Python loop, and lnav, where they are
installed. Memory is the peak of anonymous memory of all processes of a run. `--growth N` measures a
log of N times the size as well: time should grow with it, and memory should not. `--wrapper` puts
each line into what a container tool puts around it.
"""

import argparse
import gzip
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

RG = (
    "Avg prompt throughput|preempted|KV cache size|non-default args|Aborted request|Error|"
    '" 503 |" 429 '
)
WORDS = (
    "the",
    "of",
    "batch",
    "cache",
    "prefix",
    "tokens",
    "model",
    "answer",
    "user",
    "please",
    "it",
)
OURS = (
    "import sys; sys.path.insert(0, {root!r}); import parsers; e = parsers.read([{path!r}]); "
    "c = e.coverage[0]; "
    "print(e.events.height, e.facts.height, c.lines, c.matched, c.unknown, c.damaged)"
)
LOOP = (
    "import re\nr = re.compile(rb{rg!r})\nn = 0\n"
    "for line in open({path!r}, 'rb'):\n    n += r.search(line) is not None\nprint(n)"
)


def lines(seed: int) -> Iterator[str]:
    """Yield lines of a server without end; 0.10.0 still logs prompts by default."""
    rng = random.Random(seed)
    yield "INFO 01-15 00:00:00 [__init__.py:235] Automatically detected platform cuda."
    yield "INFO 01-15 00:00:01 [api_server.py:1755] vLLM API server version 0.10.0"
    yield (
        "INFO 01-15 00:00:01 [cli_args.py:261] non-default args: {'model': 'Qwen/Qwen3-8B', "
        "'max_model_len': 32768, 'max_num_seqs': 256}"
    )
    yield "INFO 01-15 00:00:20 [kv_cache_utils.py:833] GPU KV cache size: 412,384 tokens"
    prompts = [
        " ".join(rng.choices(WORDS, k=rng.randint(20, 160))).replace("it", "it\\n")
        for _ in range(200)
    ]
    second = 60.0
    choices = rng.choices(range(4), weights=(45, 40, 12, 3), k=1 << 16)
    index = 0
    while True:
        index += 1
        kind = choices[index & 0xFFFF]
        second += 0.31
        at = int(second)
        day, rest = divmod(at, 86400)
        stamp = (
            f"{1 + day // 28 % 12:02}-{1 + day % 28:02} "
            f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"
        )
        if kind == 0:
            client = f"10.0.{rng.randrange(4)}.{rng.randrange(250)}:{rng.randrange(30000, 60000)}"
            request, status = rng.choices(
                (
                    ("POST /v1/chat/completions", "200 OK"),
                    ("GET /metrics", "200 OK"),
                    ("GET /health", "200 OK"),
                    ("POST /v1/chat/completions", "503 Service Unavailable"),
                    ("POST /v1/chat/completions", "429 Too Many Requests"),
                    ("POST /v1/chat/completions", "400 Bad Request"),
                ),
                weights=(700, 150, 150, 4, 4, 2),
            )[0]
            yield f'INFO:     {client} - "{request} HTTP/1.1" {status}'
        elif kind == 1:
            name = f"chatcmpl-{rng.getrandbits(128):032x}"
            if rng.random() < 0.002:
                yield f"INFO {stamp} [async_llm.py:440] Aborted request {name}."
            elif rng.random() < 0.00002:
                yield f"ERROR {stamp} [serving_chat.py:932] Error in chat completion stream"
            else:
                yield f"INFO {stamp} [async_llm.py:270] Added request {name}."
        elif kind == 2:
            name = f"chatcmpl-{rng.getrandbits(128):032x}"
            yield (
                f"INFO {stamp} [logger.py:41] Received request {name}: prompt: "
                f"'{rng.choice(prompts)}', params: SamplingParams(n=1, temperature=0.7, "
                "max_tokens=256), prompt_token_ids: None, prompt_embeds shape: None, "
                "lora_request: None."
            )
        else:
            yield (
                f"INFO {stamp} [loggers.py:122] Engine 000: Avg prompt throughput: "
                f"{rng.uniform(0, 9000):.1f} tokens/s, Avg generation throughput: "
                f"{rng.uniform(0, 3000):.1f} tokens/s, Running: {rng.randrange(256)} reqs, "
                f"Waiting: {rng.randrange(64)} reqs, GPU KV cache usage: "
                f"{rng.uniform(0, 100):.1f}%, Prefix cache hit rate: {rng.uniform(0, 90):.1f}%"
            )


def nano(index: int) -> str:
    """Return when a container tool saw a line, to the nanosecond."""
    when = datetime(2026, 1, 15, tzinfo=UTC) + timedelta(milliseconds=310 * index)
    return f"{when:%Y-%m-%dT%H:%M:%S}.{when.microsecond * 1000 + index * 7919 % 1000:09}"


WRAPPERS: dict[str, Callable[[int, str], str]] = {
    "none": lambda _, line: line,
    # Go leaves off the zeros at the end here.
    "docker-json": lambda index, line: (
        f'{{"log":{json.dumps(line)[:-1]}\\n","stream":"stderr","time":"{nano(index).rstrip("0").rstrip(".")}Z"}}'
    ),
    "docker-logs-t": lambda index, line: f"{nano(index)}Z {line}",
    "compose": lambda _, line: f"vllm-1  | {line}",
    "cri": lambda index, line: f"{nano(index)}Z stderr F {line}",
    "kubectl": lambda index, line: f"[pod/vllm-7f9c4d-x2x4z/server] {nano(index)}Z {line}",
    "ray": lambda _, line: f"(RayWorkerWrapper pid=812, ip=10.0.0.2) {line}",
}


def generate(path: Path, size: int, wrapper: str = "none", seed: int = 1) -> None:
    """Write a log of about `size` bytes: a stretch of lines, repeated (stamps repeat with it)."""
    stretch: list[str] = []
    length = 0
    wrap = WRAPPERS[wrapper]
    for index, bare in enumerate(lines(seed)):
        line = wrap(index, bare)
        stretch.append(line)
        length += len(line) + 1
        if length >= min(size, 64 << 20):
            break
    block = ("\n".join(stretch) + "\n").encode()
    with path.open("wb") as file:
        written = 0
        while written < size:
            file.write(block)
            written += len(block)


def anonymous_bytes(pid: int) -> int:
    """Return the anonymous memory of a process and its children, in bytes."""
    total = 0
    try:
        status = Path(f"/proc/{pid}/status").read_text()
        total = next(
            int(line.split()[1]) << 10 for line in status.splitlines() if "RssAnon" in line
        )
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                total += anonymous_bytes(int(child))
    except (OSError, StopIteration):
        return total
    return total


def run(command: list[str], *, shell: str | None = None) -> tuple[float, int, str]:
    """Run a command; return wall seconds, peak anonymous bytes and its output."""
    start = time.perf_counter()
    process = subprocess.Popen(
        shell or command, shell=shell is not None, stdout=subprocess.PIPE, text=True
    )
    peak = 0
    while process.poll() is None:
        peak = max(peak, anonymous_bytes(process.pid))
        time.sleep(0.01)
    wall = time.perf_counter() - start
    assert process.stdout is not None
    return wall, peak, process.stdout.read().strip()


def report(name: str, size: int, runs: list[tuple[float, int, str]]) -> float:
    wall, _, output = min(runs)
    print(
        f"{name:28} {wall:7.2f} s {size / wall / 1e6:8.0f} MB/s"
        f" {max(peak for _, peak, _ in runs) / 1e6:7.0f} MB anonymous   {output[:70]}"
    )
    return wall


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--size-mb", type=int, default=1000)
    arguments.add_argument("--runs", type=int, default=3)
    arguments.add_argument("--dir", type=Path, default=Path(tempfile.gettempdir()))
    arguments.add_argument("--gzip", action="store_true", help="measure the packed log too")
    arguments.add_argument(
        "--growth", type=int, metavar="N", help="measure a log of N times the size too"
    )
    arguments.add_argument("--wrapper", choices=WRAPPERS, default="none")
    options = arguments.parse_args()
    path = generated(options.dir, options.size_mb, options.wrapper)
    size = path.stat().st_size
    print(f"{size / 1e6:.0f} MB, {os.cpu_count()} cores, Python {sys.version.split()[0]}")

    def best(
        command: list[str], *, shell: str | None = None, runs: int = options.runs
    ) -> list[tuple[float, int, str]]:
        return [run(command, shell=shell) for _ in range(runs)]

    ours = report("forensics", size, best(reading(path)))
    if shutil.which("rg"):
        search = report("rg -c (the mark)", size, best(["rg", "-c", RG, str(path)]))
        print(f"{'':28} {ours / search:7.2f} times rg")
    else:
        print("rg -c (the mark): skipped, ripgrep is not installed")
    if shutil.which("lnav"):
        count = ";SELECT lines FROM lnav_file"
        report("lnav -n", size, best(["lnav", "-n", "-c", count, str(path)], runs=1))
    else:
        print("lnav -n: skipped, lnav is not installed")
    script = LOOP.format(rg=RG, path=str(path))
    report("plain Python loop", size, best([sys.executable, "-c", script], runs=1))
    if options.growth:
        large = generated(options.dir, options.size_mb * options.growth, options.wrapper)
        times = large.stat().st_size / size
        longer = report(f"forensics, {times:.0f} times", large.stat().st_size, best(reading(large)))
        print(f"{'':28} {longer / ours:7.2f} times the time")
    if options.gzip:
        packed = path.with_suffix(".log.gz")
        if not packed.exists():
            with path.open("rb") as source, gzip.open(packed, "wb", 6) as target:
                shutil.copyfileobj(source, target, 1 << 20)
        ours = report("forensics, .gz", size, best(reading(packed)))
        plain = report(
            "gzip -dc | cat", size, best([], shell=f"gzip -dc {packed} | cat >/dev/null")
        )
        print(f"{'':28} {ours / plain:7.2f} times gzip -dc")


def generated(folder: Path, size_mb: int, wrapper: str) -> Path:
    """Return the log of a size in a folder; it is generated unless it is there."""
    name = "" if wrapper == "none" else f"-{wrapper}"
    path = folder / f"busy-server{name}-{size_mb}.log"
    if not path.exists():
        generate(path, size_mb * 1_000_000, wrapper)
    return path


def reading(path: Path) -> list[str]:
    """Return the command that reads a log from start to rows."""
    root = str(Path(__file__).resolve().parent.parent)
    return [sys.executable, "-c", OURS.format(root=root, path=str(path))]


if __name__ == "__main__":
    main()
