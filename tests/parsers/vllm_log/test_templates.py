"""Every log template found in the sources of 69 vLLM releases, with an example of each.

`templates.jsonl.gz` holds per template its kind, the releases it stands in, an example line, the
text that the template's own regular expression finds in it (`groups`), and the rows expected.
"""

import gzip
import json
from pathlib import Path

import pytest

from parsers.vllm_log import header, registry
from parsers.vllm_log.scanner import Scanner

VECTORS = [
    json.loads(line)
    for line in gzip.decompress(
        Path(__file__).with_name("templates.jsonl.gz").read_bytes()
    ).splitlines()
]
IGNORED = {"cudagraph_table", "server_routes", "request_response"}
SAME_KIND = {"preemption_docs_form": "preemption", "json_log": "stats_periodic"}
BLOG = {"blog_running_swapped", "blog_preempted"}
# Names in the templates are those of the source code, release by release; here is one name each.
ALIASES = {
    "prompt_throughput": "prompt_tps",
    "generation_throughput": "generation_tps",
    "num_running_reqs": "running",
    "num_waiting_reqs": "waiting",
    "gpu_cache_usage": "kv_usage_pct",
    "hit_rate": "prefix_hit_rate_pct",
    "num_tokens_str": "num_tokens",
    "available_gib": "kv_gib",
    "num_gpu_blocks_override": "override_blocks",
    "model_memory_usage": "weights_gib",
    "freed_bytes": "freed_gib",
    "used_bytes": "used_gib",
    "num_new_tokens": "num_prompt_tokens",
    "max_seq_len": "max_kv_tokens",
}
NUMBER_FREE = {"mode", "action", "rates_str"}


def scan(example):
    scanner = Scanner()
    for at, line in enumerate(example.split("\n")):
        scanner.line(line.encode(), at, len(line) + 1)
    return scanner.part


def kinds(part):
    return [row.kind for row in part.records if not row.kind.startswith("process_")]


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["kind"])
def test_each_example_yields_its_kind_and_rows(vector):
    part = scan(vector["example"])
    assert part.unknown == part.damaged == 0
    kind = SAME_KIND.get(vector["kind"], vector["kind"])
    if kind == "http_access":
        assert [[row.label, row.detail] for row in part.tallies] == [["200", "api"]]
    elif kind in IGNORED:
        assert part.records == []
        assert part.ignored == 1
    elif kind == "blog_only":
        assert set(kinds(part)) <= BLOG
        assert len(part.records) == 1
    elif vector["example"].endswith("WorkerProc was terminated"):
        # Logged on SIGTERM: counted as a shutdown, not as a death.
        assert kinds(part) == ["shutdown"]
    elif "engine core exited unexpectedly" in vector["example"]:
        assert kinds(part) == ["engine_death"]
    else:
        assert set(kinds(part)) == {kind}
    got = [
        [row.kind, row.place.engine, json.loads(row.fields)]
        for row in part.records
        if not row.kind.startswith("process_")
    ]
    assert got == vector["events"]
    assert [[row.fact.key, row.fact.value] for row in part.statements] == vector["facts"]


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["kind"])
def test_fields_agree_with_the_templates_own_expression(vector):
    found = {}
    for row in scan(vector["example"]).records:
        found.update(json.loads(row.fields))
    for name, text in vector["groups"].items():
        key = ALIASES.get(name, name)
        if key not in found or key in NUMBER_FREE:
            continue
        if isinstance(found[key], int | float) and not isinstance(found[key], bool):
            assert float(text.replace(",", "").strip("'")) == found[key]
        else:
            assert text == found[key]


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["kind"])
def test_no_other_kind_takes_the_example(vector):
    message = header.read_head(vector["example"].split("\n")[0]).message
    taken = registry.take(message)
    if taken is None:
        return
    takers = {
        pattern.kind
        for pattern in registry.PATTERNS
        if not pattern.ignored and pattern.take(taken.message) is not None
    }
    assert len(takers - {taken.pattern.kind}) == 0


def test_every_kind_of_template_is_there():
    assert len({vector["kind"] for vector in VECTORS}) == 79
    assert len(VECTORS) == 409


def test_pattern_names_are_unique():
    names = [pattern.name for pattern in registry.PATTERNS]
    assert len(names) == len(set(names))
