"""How long `forensics lint` takes: its start, and a thousand runbooks.

Usage: python benchmarks/lint_speed.py [FILES]

Marks: start-up under 0.3 s of processor time; 1,000 Markdown files under 10 s on two cores. The
files are made here, about 7 KB each, a third of them with mistakes: prose, tables, fenced PromQL,
YAML, shell and inline code, as in real runbooks, all of them about vLLM.
"""

import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TEXT = (
    "the server queue grows when requests wait for blocks and latency follows so check usage "
    "before you restart a replica because its cache is cold afterwards and users notice"
)
WORDS = TEXT.split()
QUERIES = (
    "max by (engine) (vllm:kv_cache_usage_perc) > 0.95",
    "sum(rate(vllm:prefix_cache_hits_total[5m])) / sum(rate(vllm:prefix_cache_queries_total[5m]))",
    "histogram_quantile(0.99, sum by (le) (rate(vllm:time_to_first_token_seconds_bucket[5m])))",
    "increase(vllm:num_preemptions_total[10m]) > 5",
)
MISTAKES = (
    "vllm:gpu_cache_usage_perc > 90",
    "rate(vllm:prompt_tokens[5m])",
    "vllm:prefix_cache_hits_total / vllm:prefix_cache_queries_total",
)


def runbook(number: int) -> str:
    """One runbook, different for each number."""
    chance = random.Random(number)

    def prose(sentences: int) -> str:
        return " ".join(
            " ".join(chance.choices(WORDS, k=12)).capitalize() + "." for _ in range(sentences)
        )

    def query() -> str:
        return chance.choice(MISTAKES if number % 3 == 0 and chance.random() < 0.3 else QUERIES)

    parts = [f"---\nvllm-version: 0.1{number % 3 + 1}\n---\n# vLLM runbook {number}\n"]
    for section in range(6):
        parts.append(f"## Step {section}\n\n{prose(5)}\n\nLook at `{query()}` first.\n")
        parts.append(f"```promql\n{query()}\n\n{query()}\n```\n")
        parts.append(f"| signal | query |\n|---|---|\n| a | `{query()}` |\n| b | `{query()}` |\n")
        parts.append(f"1. {prose(1)}\n2. {prose(1)}\n   > {prose(1)}\n")
    parts.append(
        f"```yaml\ngroups:\n- name: vllm\n  rules:\n  - alert: Full\n    expr: {query()}\n```\n"
        "```bash\nvllm serve meta-llama/Meta-Llama-3-8B \\\n  --max-num-seqs 128 \\\n"
        "  --gpu-memory-utilization 0.9\n"
        'kubectl logs deploy/vllm | grep -E "GPU KV cache usage: 9[0-9]"\n```\n'
    )
    return "\n".join(parts)


def timed(*arguments: str, cwd: Path) -> tuple[float, float, str]:
    """Seconds on the wall and of the processor, and what was printed."""
    before, start = os.times(), time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", "from forensics.cli.main import main; main()", *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    wall, after = time.perf_counter() - start, os.times()
    used = sum(after[2:4]) - sum(before[2:4])
    return wall, used, done.stdout


def main() -> None:
    """Print the figures beside their marks."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        one = folder / "one"
        one.mkdir()
        (one / "a.md").write_text(runbook(1), encoding="utf-8")
        starts = [timed("lint", "one", cwd=folder)[:2] for _ in range(5)]
        many = folder / "many"
        many.mkdir()
        for number in range(count):
            (many / f"{number:04}.md").write_text(runbook(number), encoding="utf-8")
        size = sum(path.stat().st_size for path in many.iterdir())
        wall, used, printed = timed("lint", "many", cwd=folder)
    start_wall, start_used = (min(column) for column in zip(*starts, strict=True))
    print(f"one file    {start_wall:6.2f} s wall  {start_used:6.2f} s cpu  (mark 0.3)")
    print(f"{count} files  {wall:6.2f} s wall  {used:6.2f} s cpu  (mark 10)")
    print(f"{size / count / 1e3:.1f} KB each")
    print(printed.splitlines()[-1])


if __name__ == "__main__":
    main()
