"""What the patterns make of lines beyond the templates' examples."""

import io
import json

import pytest

from parsers.vllm_log import access, header, registry, requests
from parsers.vllm_log.chunks import ChunkReader
from parsers.vllm_log.printed_config import split_pairs, unquoted
from parsers.vllm_log.scanner import Scanner


def scan(*lines):
    scanner = Scanner()
    for at, line in enumerate(lines):
        scanner.line(line.encode(), at, len(line) + 1)
    return scanner.part


def fields(line):
    rows = [row for row in scan(line).records if not row.kind.startswith("process_")]
    assert len(rows) == 1
    return rows[0].kind, json.loads(rows[0].fields)


def facts(line):
    return {row.fact.key: row.fact.value for row in scan(line).statements}


def test_an_inserted_segment_does_not_lose_the_record():
    kind, found = fields(
        "INFO 01-15 10:23:45 [loggers.py:80] Engine 002: Avg prompt throughput: 15.5 tokens/s, "
        "Avg generation throughput: 8.0 tokens/s, Running: 5 reqs, Waiting: 4 reqs, Novel thing: "
        "17 reqs, Deferred: 2 reqs, GPU KV cache usage: 9.5%, Prefix cache hit rate: 41.3%"
    )
    assert kind == "stats_periodic"
    assert found == {
        "prompt_tps": 15.5,
        "generation_tps": 8.0,
        "running": 5,
        "waiting": 4,
        "deferred": 2,
        "prefix_hit_rate_pct": 41.3,
        "device": "GPU",
        "kv_usage_pct": 9.5,
    }


def test_figures_that_are_none_are_left_out():
    _, found = fields(
        "INFO 01-15 10:23:45 [loggers.py:80] Engine 000: Avg prompt throughput: nan tokens/s, Avg "
        "generation throughput: 8.0 tokens/s, Running: 5 reqs, Waiting: 4 reqs, GPU KV cache "
        "usage: 9.5%, Prefix cache hit rate: nan%"
    )
    assert "prompt_tps" not in found
    assert "prefix_hit_rate_pct" not in found
    assert found["running"] == 5


def test_aggregated_engines():
    _, found = fields(
        "INFO 01-15 10:23:45 [loggers.py:80] 4 Engines Aggregated: Avg prompt throughput: 15.5 "
        "tokens/s, Avg generation throughput: 8.0 tokens/s, Running: 5 reqs, Waiting: 4 reqs, "
        "GPU KV cache usage: 9.5%, Prefix cache hit rate: 41.3%"
    )
    assert found["num_engines"] == 4


@pytest.mark.parametrize(
    "line",
    [
        "INFO 05-12 08:01:39 Running 128 requests, 14 sequences in the swap out queue",
        "INFO … Running 128 requests, 14 sequences in the swap out queue",
        "[vllm] INFO: Running 128 requests, 14 sequences in the swap out queue.",
        "- **INFO** Running 128 requests, 14 sequences in the swap out queue",
    ],
)
def test_the_first_line_of_the_articles(line):
    assert fields(line) == ("blog_running_swapped", {"running": 128, "swapped": 14})


@pytest.mark.parametrize(
    "line",
    [
        "WARN 05-12 08:01:39 Sequence 42 is preempted from GPU to CPU",
        "WARN … Sequence 42 is preempted from GPU to CPU.",
    ],
)
def test_the_second_line_of_the_articles(line):
    assert fields(line) == (
        "blog_preempted",
        {"request_id": "42", "source": "GPU", "target": "CPU"},
    )


@pytest.mark.parametrize(
    ("prefix", "name", "engine"),
    [
        ("(VllmWorkerProcess pid=1786) ", "Worker", None),
        ("(VllmWorker rank=0 pid=1786) ", "Worker", None),
        ("(VllmWorker PP0_TP1 pid=12) ", "Worker", None),
        ("(Worker_DP1_TP0_EP0 pid=12) ", "Worker", "1"),
        ("(Worker_TP0 pid=12) ", "Worker", None),
        ("(EngineCore_0 pid=94) (VllmWorker TP0 pid=101) ", "Worker", "0"),
        ("(EngineCore_DP3 pid=123) ", "EngineCore", "3"),
        ("(EngineCore pid=123) ", "EngineCore", None),
        ("(ApiServer_0 pid=1) ", "APIServer", None),
        ("(APIServer_DPRank_2 pid=1) ", "APIServer", "2"),
        ("(DPSupervisor pid=1) ", "DPSupervisor", None),
        ("(RayWorkerWrapper pid=812, ip=10.0.0.2) ", "Worker", None),
        ("(MainProcess pid=1) ", "MainProcess", None),
    ],
)
def test_process_prefixes(prefix, name, engine):
    head = header.read_head(f"{prefix}INFO 01-15 10:23:45 [core.py:75] text (pid=1) here")
    assert (head.process.name, head.process.engine) == (name, engine)
    assert head.message == "text (pid=1) here"
    assert head.stamp == header.yearless("01-15 10:23:45")


def test_the_leap_day_has_a_stamp_and_the_thirtieth_has_none():
    assert header.yearless("03-01 00:00:00") - header.yearless("02-29 00:00:00") == 86400
    assert header.yearless("02-30 00:00:00") is None
    assert header.yearless("00-10 00:00:00") is None


def test_prompt_text_leaves_only_hashes():
    text = "The quick brown fox. " * 20
    line = (
        "INFO 01-15 10:23:45 [logger.py:41] Received request chatcmpl-1: prompt: "
        f"{text!r}, params: SamplingParams(n=2, temperature=0.7, max_tokens=256), "
        "prompt_token_ids: None, prompt_embeds shape: None, lora_request: None."
    )
    kind, found = fields(line)
    assert kind == "request_received"
    assert "fox" not in json.dumps(found)
    assert (found["unit"], found["block"], found["length"]) == ("chars", 64, 420)
    assert len(found["block_hashes"]) == 6
    assert (found["n"], found["max_tokens"]) == (2, 256)
    other = fields(line.replace("The quick brown fox. The", "A"))[1]
    assert not set(found["block_hashes"]) & set(other["block_hashes"])


def test_token_ids_hash_by_sixteen_and_share_prefixes():
    def hashes(tokens):
        line = (
            "INFO 01-15 10:23:45 async_llm_engine.py:553] Received request cmpl-1: prompt: None, "
            f"params: SamplingParams(n=1), prompt_token_ids: {tokens}, lora_request: None."
        )
        return fields(line)[1]

    first, second = hashes(list(range(40))), hashes([*range(32), 99, 98])
    assert (first["unit"], first["block"], first["length"]) == ("tokens", 16, 40)
    assert len(first["block_hashes"]) == 2
    assert first["block_hashes"] == second["block_hashes"]
    assert hashes([5, *range(1, 40)])["block_hashes"][0] != first["block_hashes"][0]
    assert requests.token_hashes(["1"] * 15) == []


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/v1/chat/completions", "api"),
        ("/v1/models?x=/metrics", "api"),
        ("/generate", "api"),
        ("/metrics", "metrics"),
        ("/metrics/", "metrics"),
        ("/health", "health"),
        ("/ping", "health"),
        ("/docs", "other"),
        ("/", "other"),
    ],
)
def test_classes_of_paths(path, expected):
    assert access.path_class(path) == expected


def test_refused_requests_are_counted_by_status(parse_lines):
    events = parse_lines(
        'INFO:     1.2.3.4:5 - "POST /v1/completions HTTP/1.1" 503 Service Unavailable',
        'INFO:     1.2.3.4:5 - "POST /v1/completions HTTP/1.1" 503 Service Unavailable',
        'INFO:     1.2.3.4:5 - "POST /v1/completions HTTP/1.1" 429 Too Many Requests',
        'INFO:     1.2.3.4:5 - "POST /v1/completions HTTP/1.1" 499 Strange Reason',
        '(APIServer pid=1) INFO:     [::1]:5 - "GET /health HTTP/1.1" 200 OK',
    )
    assert events["fields"].to_list() == [
        '{"status":503,"path_class":"api","count":2}',
        '{"status":429,"path_class":"api","count":1}',
        '{"status":499,"path_class":"api","count":1}',
        '{"status":200,"path_class":"health","count":1}',
    ]


def test_the_last_line_of_a_traceback_goes_to_the_death_it_explains(parse_lines):
    prefix = "(EngineCore_DP0 pid=94) ERROR 01-15 10:23:45 [core.py:708] "
    events = parse_lines(
        prefix + "EngineCore encountered a fatal error.",
        prefix + "Traceback (most recent call last):",
        prefix + '  File "core.py", line 1, in run',
        prefix + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.25 GiB. GPU 0 has"
        " a total capacity of 79.11 GiB of which 611.00 MiB is free. Process 1 has 1 GiB.",
    )
    found = dict(zip(events["kind"], map(json.loads, events["fields"]), strict=True))
    assert found["engine_death"]["error"].startswith("torch.OutOfMemoryError: CUDA out of memory.")
    assert found["oom"]["total"] == "79.11 GiB"
    assert found["traceback"]["traceback"] is True
    assert set(events["engine"]) == {"0"}


@pytest.mark.parametrize(
    ("line", "key", "value"),
    [
        (
            "| N/A   35C    P0    64W / 400W |  70000MiB / 81920MiB |      0%      Default |",
            "gpu.total_gib",
            "80",
        ),
        (
            "|   0  NVIDIA A100-SXM4-80GB          On  | 00000000:07:00.0 Off |",
            "gpu.name",
            "NVIDIA A100-SXM4-80GB",
        ),
        ("GPU models and configuration: GPU 0: NVIDIA L4", "gpu.name", "NVIDIA L4"),
        ("GPU 0: NVIDIA H100 80GB HBM3", "gpu.name", "NVIDIA H100 80GB HBM3"),
        (
            "INFO 01-15 10:23:45 fused_moe.py:316] Using configuration from /x/E=8,N=14336,"
            "device_name=NVIDIA_H100_80GB_HBM3.json for MoE layer.",
            "gpu.name",
            "NVIDIA H100 80GB HBM3",
        ),
    ],
)
def test_where_a_log_names_the_gpu(line, key, value):
    assert facts(line)[key] == value


def test_secrets_among_the_arguments_are_not_kept():
    found = facts(
        "INFO 01-15 10:23:45 [utils.py:1] non-default args: {'model': 'm', 'api_key': ['sk-1'], "
        "'hf_token': 'hf_x', 'max_num_batched_tokens': 8192}"
    )
    assert found["flag.api_key"] == found["flag.hf_token"] == "***"
    assert found["flag.max_num_batched_tokens"] == "8192"
    assert found["model.name"] == "m"


def test_arguments_that_are_no_literals_are_read_all_the_same():
    found = facts(
        "INFO 01-15 10:23:45 [utils.py:1] non-default args: {'model': 'a, b', 'mode': <Mode.X: 1>, "
        "'max_num_seqs': 64}"
    )
    assert found["flag.mode"] == "<Mode.X: 1>"
    assert found["flag.max_num_seqs"] == "64"
    assert found["flag.model"] == "a, b"


def test_configuration_splits_at_top_level_only():
    text = "model='a, (b', x={'k': [1, 2]}, y=Config(a=1, b=(2, 3)), z=None"
    assert dict(split_pairs(text)) == {
        "model": "'a, (b'",
        "x": "{'k': [1, 2]}",
        "y": "Config(a=1, b=(2, 3))",
        "z": "None",
    }
    assert unquoted(r"'it\'s'") == "it's"


def test_plain_stats_lines_read_as_the_others_do():
    lines = [
        "INFO 01-15 10:23:45 [loggers.py:80] Engine 012: Avg prompt throughput: 0.0 tokens/s, Avg "
        "generation throughput: 812.7 tokens/s, Running: 0 reqs, Waiting: 14 reqs, GPU KV cache "
        "usage: 100.0%, Prefix cache hit rate: 41.3%",
        "(APIServer pid=1) INFO 01-15 10:23:45 [loggers.py:80] Engine 000: Avg prompt throughput: "
        "1523.4 tokens/s, Avg generation throughput: 812.7 tokens/s, Running: 128 reqs, Waiting: "
        "14 reqs, XPU KV cache usage: 1.0%",
        "INFO 01-15 10:23:45 metrics.py:455] Avg prompt throughput: 1523.4 tokens/s, Avg "
        "generation throughput: 812.7 tokens/s, Running: 128 reqs, Swapped: 0 reqs, Pending: 14 "
        "reqs, GPU KV cache usage: 99.2%, CPU KV cache usage: 0.0%.",
        "INFO 01-15 10:23:45 [loggers.py:80] Engine 000: Avg prompt throughput: 007.0 tokens/s",
    ]
    reader = ChunkReader(count_requests=True)
    reader.fill(io.BytesIO("\n".join(lines).encode()))
    one_by_one = scan(*lines)
    whos = {number: who for who, number in reader.part.whos.items()}
    plain = [
        (*whos[number], stamp, length)
        for piece in reader.part.plain
        for number, stamp, length in zip(
            piece.whos.tolist(), piece.stamps.tolist(), piece.lengths.tolist(), strict=True
        )
    ]
    expected = one_by_one.records[:3]
    assert plain == [
        (
            "yearless",
            None,
            row.place.engine,
            row.place.process,
            row.kind,
            row.place.stamp,
            len(row.fields),
        )
        for row in expected
    ]
    text = b"".join(piece.text for piece in reader.part.plain)
    assert text.decode() == "".join(row.fields for row in expected)
    assert not reader.part.records  # the last line, which has no line feed yet


def test_every_pattern_that_keeps_something_names_the_releases_that_print_it():
    foreign = {
        "blog_preempted",
        "blog_running_swapped",
        "nvidia_smi_memory",
        "nvidia_smi_name",
        "startup_chatter",
    }
    for pattern in registry.PATTERNS:
        assert bool(pattern.since) == (pattern.name not in foreign), pattern.name


@pytest.mark.parametrize(
    "line",
    [
        "INFO 01-15 10:23:45 [async_llm.py:270] Added request chatcmpl-8f2c.",
        "(APIServer pid=1) INFO 01-15 10:23:45 [async_llm.py:270] Added request a:b/c@d-1.",
        "INFO 01-15 10:23:45 async_llm_engine.py:111] Finished request cmpl-8f2c-0.",
        'INFO 01-15 10:23:45 async_llm_engine.py:111] Finished request "quoted".',
        "INFO 01-15 10:23:45 async_llm_engine.py:111] Finished request é.",
        "INFO 13-45 10:23:45 async_llm_engine.py:111] Finished request cmpl-8f2c-0.",
    ],
)
def test_plain_steps_read_as_the_others_do(parse_lines, line):
    events = parse_lines(line)
    row = scan(line).records[0]
    assert events.select("stamp", "engine", "process", "kind", "fields").rows() == [
        (row.place.stamp, row.place.engine, row.place.process, row.kind, row.fields)
    ]
