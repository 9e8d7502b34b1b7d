"""Documents made to hang or break a reader: bounded, and never an exception."""

import time
from datetime import date

import pytest

from forensics.runbooks.linting import Request, lint_text
from forensics.runbooks.settings import Settings

REQUEST = Request(Settings(), None, date(2026, 11, 29))
N = 20_000
CASES = {
    "backticks": "vllm " + "`a``b```c" * (N // 9),
    "open-braces": "vllm `{" + "=" * N + "`",
    "deep-promql": "```promql\n" + "(" * 3000 + "vllm:num_requests_running" + ")" * 3000 + "\n```",
    "long-promql": "```promql\n" + "+".join(["vllm:num_requests_running"] * 700) + "\n```",
    "unclosed-fences": "```sh\nvllm\n\n" * (N // 12),
    "open-comments": "vllm <!-- forensics: " * (N // 21),
    "open-marks": "<!-- forensics:ceiling " * (N // 23) + "vllm",
    "substitutions": "```sh\nvllm serve " + "$(" * (N // 2) + "\n```",
    "here-documents": "```sh\nvllm <<A " + "<<A " * (N // 4) + "\n" + "x\n" * 2000 + "```",
    "repetition-in-repetition": "```sh\n"
    'kubectl logs vllm | grep -E "(.*)*(.*)*kv cache(x+x+)+y"\n```',
    "same-word-often": '```sh\nkubectl logs vllm | grep "kv cache' + ".*value" * 60 + '"\n```',
    "control-characters": "vllm \x00\x1b[31m`vllm:gpu_cache_usage_perc\x07 > 90`\udcff",
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("path", ["a.md", "a.sh", "a.yaml", "a.json"])
def test_bounded(name: str, path: str) -> None:
    start = time.process_time()
    lint_text(path, CASES[name], REQUEST, frozenset())
    assert time.process_time() - start < 10  # each takes well under a second but for repetitions
