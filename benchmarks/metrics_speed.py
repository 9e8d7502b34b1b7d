"""Speed and memory of the metrics readers, whole process, against what others would use.

    python benchmarks/metrics_speed.py            # the sizes the goals name; takes some minutes
    python benchmarks/metrics_speed.py --share 0.1  # a tenth of them
    python benchmarks/metrics_speed.py --check    # exit code 1 when a goal is missed

Goals: text exposition at least 20 times as fast as prometheus_client on 100 MB; a 350 MB
query_range answer with 2,000 series in at most half the time of orjson.loads and under 1.5 times
its size in memory; under 500 MB when only the known tenth of a ten times larger answer is kept.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
POINTS = 6700  # per series: 15 s steps over 28 hours
SERIES = 2000
TEXT_BYTES = 100_000_000

READ = """
import sys
from parsers.interface import ReadOptions, Source
from parsers.prometheus import FORMATS
path, size, known = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "known"
source = Source(0, path, path, 1.8e9, open(path, "rb").read(65536), lambda: open(path, "rb"),
                path, size)
reader = next(one for one in FORMATS if one.recognises(source))
parsed = reader.parse(source, ReadOptions(known_series_only=known), lambda *_: None)
print(parsed.coverage.samples)
"""
PROMETHEUS_CLIENT = """
import sys
from prometheus_client.parser import text_fd_to_metric_families
with open(sys.argv[1]) as text:
    print(sum(len(family.samples) for family in text_fd_to_metric_families(text)))
"""
ORJSON = """
import sys, orjson
answer = orjson.loads(open(sys.argv[1], "rb").read())
print(sum(len(series["values"]) for series in answer["data"]["result"]))
"""


@dataclass(frozen=True)
class Run:
    """One process: wall time, processor time, peak memory and the samples it counted."""

    wall_s: float
    cpu_s: float
    peak_bytes: int
    samples: int


def run(program: str, *arguments: object) -> Run:
    """Run a program in a process of its own."""
    start = time.perf_counter()
    child = subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)], cwd=ROOT, stdout=subprocess.PIPE
    )
    out = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    wall = time.perf_counter() - start
    if child.returncode:
        raise SystemExit(f"a benchmark process failed with {child.returncode}")
    return Run(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, int(out))


def best(program: str, *arguments: object, times: int = 3) -> Run:
    """Return the fastest of several runs."""
    return min((run(program, *arguments) for _ in range(times)), key=lambda one: one.wall_s)


def exposition(share: float) -> Iterator[str]:
    """Make scrapes of one server, a second apart, with counters that count."""
    rng = random.Random(7)
    edges = ["0.001", "0.005", "0.01", "0.02", "0.04", "0.06", "0.08", "0.1", "0.25", "0.5"]
    edges += ["0.75", "1.0", "2.5", "5.0", "7.5", "10.0", "20.0", "40.0", "80.0", "+Inf"]
    names = ["time_to_first_token", "inter_token_latency", "e2e_request_latency"]
    names += [f"request_{part}_time" for part in ("queue", "inference", "prefill", "decode")]
    labels = 'engine="0",model_name="meta-llama/Llama-3.1-8B-Instruct"'
    counts = dict.fromkeys(names, 0)
    written, scrape = 0, 0
    while written < TEXT_BYTES * share:
        lines = [f"# {time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(1_795_973_250 + scrape))}"]
        for gauge in ("num_requests_running", "num_requests_waiting", "kv_cache_usage_perc"):
            lines += [f"# HELP vllm:{gauge} A gauge.", f"# TYPE vllm:{gauge} gauge"]
            lines.append(f"vllm:{gauge}{{{labels}}} {rng.random()}")
        for name in names:
            family = f"vllm:{name}_seconds"
            counts[name] += rng.randrange(40)
            lines += [f"# HELP {family} Histogram of {name}.", f"# TYPE {family} histogram"]
            for index, edge in enumerate(edges, 1):
                value = float(counts[name] * index // len(edges))
                lines.append(f'{family}_bucket{{{labels},le="{edge}"}} {value}')
            lines.append(f"{family}_count{{{labels}}} {float(counts[name])}")
            lines.append(f"{family}_sum{{{labels}}} {counts[name] * 0.37}")
        text = "\n".join(lines) + "\n"
        written += len(text)
        scrape += 1
        yield text


def answer(series: int, known: float) -> Iterator[str]:
    """Make a query_range answer, series by series; a share of them has names vLLM exposes."""
    rng = random.Random(7)
    stamps = [1_795_000_000.053 + 15 * index for index in range(POINTS)]
    shapes = []
    for shape in range(8):
        value, values = 0.0, []
        for _ in stamps:
            value += rng.randrange(40) if shape % 2 else rng.random()
            values.append(f"{value:.0f}" if shape % 2 else repr(value if shape % 4 else value % 1))
        pairs = zip(stamps, values, strict=True)
        shapes.append(",".join(f'[{stamp:.3f},"{text}"]' for stamp, text in pairs))
    yield '{"status":"success","data":{"resultType":"matrix","result":['
    for index in range(series):
        name = "vllm:e2e_request_latency_seconds_bucket"
        if (index + 1) * known // 1 == index * known // 1:
            name = "container_memory_working_set_bytes"
        labels = {"__name__": name, "engine": str(index % 8), "instance": f"10.0.{index // 8}.1:80"}
        yield (
            "," * (index > 0) + f'{{"metric":{json.dumps(labels)},"values":[{shapes[index % 8]}]}}'
        )
    yield "]}}"


def written(path: Path, parts: Iterator[str]) -> int:
    """Write a file; return its size."""
    with path.open("w") as file:
        file.writelines(parts)
    return path.stat().st_size


def text(path: Path, share: float) -> bool:
    """Compare with prometheus_client on scrapes of one server."""
    size = written(path, exposition(share))
    theirs, ours = best(PROMETHEUS_CLIENT, path, times=1), best(READ, path, size, "all")
    return told(
        "text", size, ours, theirs.wall_s / ours.wall_s, ">=", 20, "x prometheus_client"
    ) and (ours.samples == theirs.samples)


def query_range(path: Path, share: float) -> bool:
    """Compare with orjson on an answer of which every series is kept."""
    size = written(path, answer(int(SERIES * share), 1.0))
    theirs, ours = best(ORJSON, path, times=1), best(READ, path, size, "all")
    fast = told(
        "query_range", size, ours, ours.wall_s / theirs.wall_s, "<=", 0.5, "of orjson's time"
    )
    small = told("", size, ours, ours.peak_bytes / size, "<=", 1.5, "of the file in memory")
    return fast and small and ours.samples == theirs.samples


def known(path: Path, share: float) -> bool:
    """Measure the memory for an answer of which a tenth is kept."""
    size = written(path, answer(int(SERIES * 10 * share), 0.1))
    ours = best(READ, path, size, "known", times=1)
    return told("known tenth", size, ours, ours.peak_bytes / 1e6, "<=", 500, "MB in memory")


COMPARISONS = {"text": text, "query_range": query_range, "known": known}


def main() -> int:
    """Run the comparisons and print them."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--share", type=float, default=1.0, help="of the full sizes")
    arguments.add_argument("--only", choices=COMPARISONS, help="run one comparison")
    arguments.add_argument("--check", action="store_true", help="fail when a goal is missed")
    options = arguments.parse_args()
    met = True
    for name, comparison in COMPARISONS.items():
        if options.only in (None, name):
            with tempfile.TemporaryDirectory(prefix="metrics-speed-") as place:
                met &= comparison(Path(place) / name, options.share)
    return 0 if met or not options.check else 1


def told(
    name: str, size: int, ours: Run, figure: float, relation: str, goal: float, unit: str
) -> bool:
    """Print one line; return whether the goal is met."""
    good = figure >= goal if relation == ">=" else figure <= goal
    speed = f"{size / 1e6:5.0f} MB {ours.wall_s:6.2f} s (processor {ours.cpu_s:.2f} s)"
    outcome = f"goal {relation} {goal}: {'met' if good else 'MISSED'}"
    print(f"{name:12} {speed}  {figure:7.2f} {unit} ({outcome})")
    return good


if __name__ == "__main__":
    sys.exit(main())
