"""Facts and signs of life → epochs: what was stated, by whom, and which process it belongs to."""

import pytest

from forensics.config import Options
from forensics.diary.engines import map_engines
from forensics.diary.write import write_diary

RUNNING = "vllm:num_requests_running"


@pytest.fixture
def diary_of(evidence_of):
    def written(series=(), events=(), facts=(), options=None, **how):
        evidence = evidence_of(series, events, facts, **how)
        engines = map_engines(evidence)
        (key,) = engines.keys
        return write_diary(evidence, engines, key, options or Options())

    return written


def stats(at):
    return (at, "stats_periodic", {"running": 1})


def epoch_of(diary):
    (epoch,) = diary.epochs
    return epoch


def test_settings_and_where_they_were_stated(diary_of):
    epoch = epoch_of(
        diary_of(
            events=[(0.0, "startup_version", {}), stats(60.0)],
            facts=[
                (0.0, "vllm.version", "0.11.2"),
                (1.0, "flag.max_num_seqs", "128"),
                (1.0, "flag.enable_prefix_caching", "True"),
                (1.0, "max_model_len", "2048"),
                (2.0, "config.tensor_parallel_size", "2"),
                (2.0, "config.dtype", "torch.bfloat16"),
                (2.0, "config.kv_cache_dtype", "auto"),
            ],
        )
    )
    assert str(epoch.version) == "0.11.2"
    assert epoch.generation == "V1"
    assert epoch.max_num_seqs == 128
    assert epoch.max_num_seqs_stated.place.offset == 150
    assert epoch.prefix_caching is True
    assert epoch.max_model_len == 2048
    assert epoch.tensor_parallel_size == 2
    assert epoch.dtype == "torch.bfloat16"
    assert epoch.before(0, 12) is True
    assert epoch.before(0, 11, 2) is False


def test_what_nobody_stated_is_unknown(diary_of):
    epoch = epoch_of(diary_of([(RUNNING, {}, [(0.0, 1.0), (10.0, 1.0)])]))
    assert epoch.version is None
    assert epoch.generation is None
    assert epoch.max_num_seqs is None
    assert epoch.prefix_caching is None
    assert epoch.pool.tokens is None
    assert epoch.gpu.candidates == ()
    assert epoch.before(0, 12) is None


def test_default_of_the_release_is_not_a_stated_value(diary_of):
    epoch = epoch_of(
        diary_of(
            events=[stats(60.0)],
            facts=[(0.0, "vllm.version", "0.8.5"), (0.0, "engine.generation", "V0")],
        )
    )
    assert epoch.max_num_seqs == 256
    assert epoch.max_num_seqs_stated is None


def test_operator_names_gpu_and_model_and_only_fills_in_the_version(diary_of):
    facts = [
        (0.0, "vllm.version", "0.11.2"),
        (0.0, "model.name", "a/b"),
        (0.0, "gpu.name", "NVIDIA L4"),
    ]
    options = Options(gpu="A100-80GB", model="meta-llama/Llama-3.1-8B", vllm_version="0.8.5")
    epoch = epoch_of(diary_of(events=[stats(60.0)], facts=facts, options=options))
    assert epoch.gpu.source == "operator"
    assert "A100" in epoch.gpu.name
    assert epoch.model.value == "meta-llama/Llama-3.1-8B"
    assert epoch.model.place is None
    assert str(epoch.version) == "0.11.2"


def test_version_of_the_operator_where_none_is_stated(diary_of):
    epoch = epoch_of(diary_of(events=[stats(60.0)], options=Options(vllm_version="0.8.5")))
    assert str(epoch.version) == "0.8.5"


def test_pool_of_the_smallest_rank_counts(diary_of):
    epoch = epoch_of(
        diary_of(
            events=[stats(60.0)],
            facts=[
                (0.0, "cache_config.block_size", "16"),
                (1.0, "pool.tokens", "131072"),
                (1.0, "pool.tokens", "114656"),
                (1.0, "pool.tokens", "131072"),
            ],
        )
    )
    assert epoch.pool.tokens == 114656
    assert epoch.pool.blocks == 7166
    assert epoch.pool.place.offset == 250


def test_pool_in_blocks_and_block_size(diary_of):
    facts = [(0.0, "pool.num_gpu_blocks", "7166"), (0.0, "flag.block_size", "16")]
    epoch = epoch_of(diary_of(events=[stats(60.0)], facts=facts))
    assert (epoch.pool.tokens, epoch.pool.blocks, epoch.pool.block_size) == (114656, 7166, 16)


def test_pool_of_nothing_is_unknown(diary_of):
    facts = [(0.0, "cache_config.num_gpu_blocks", "None"), (0.0, "cache_config.block_size", "16")]
    assert epoch_of(diary_of(events=[stats(60.0)], facts=facts)).pool.tokens is None


def test_gpu_by_its_name(diary_of):
    epoch = epoch_of(diary_of(events=[stats(60.0)], facts=[(0.0, "gpu.name", "NVIDIA L4")]))
    assert epoch.gpu.candidates
    assert epoch.gpu.source == "device name"


def test_memory_alone_leaves_several_gpus(diary_of):
    epoch = epoch_of(diary_of(events=[stats(60.0)], facts=[(0.0, "memory.total_gib", "79.15")]))
    assert len(epoch.gpu.candidates) > 1
    assert epoch.gpu.name is None
    assert epoch.gpu.memory_bytes == int(79.15 * 2**30)


@pytest.mark.parametrize("value", ["nan", "inf", "many", "", "1e400"])
def test_numbers_that_are_none(diary_of, value):
    epoch = epoch_of(diary_of(events=[stats(60.0)], facts=[(0.0, "flag.max_num_seqs", value)]))
    assert epoch.max_num_seqs is None


def test_each_start_is_an_epoch_with_its_own_settings(diary_of):
    diary = diary_of(
        events=[
            (0.0, "process_start", {}),
            stats(60.0),
            (90.0, "process_stop", {}),
            (100.0, "process_start", {}),
            stats(160.0),
        ],
        facts=[
            (0.0, "vllm.version", "0.10.0"),
            (1.0, "flag.max_num_seqs", "64"),
            (100.0, "vllm.version", "0.11.0"),
            (101.0, "flag.max_num_seqs", "128"),
        ],
    )
    first, second = diary.epochs
    assert (str(first.version), first.max_num_seqs) == ("0.10.0", 64)
    assert (str(second.version), second.max_num_seqs) == ("0.11.0", 128)
    assert first.end == 90.0
    assert second.start == 100.0
    assert second.end is None
    assert diary.at(50.0) is first
    assert diary.at(120.0) is second
    assert diary.at(-5.0) is first


def test_lines_of_one_start_are_one_epoch(diary_of):
    """Loading takes minutes between the banner and the engine's own version line."""
    diary = diary_of(
        events=[
            (0.0, "startup_logo", {}),
            (20.0, "process_start", {}),
            (400.0, "startup_version", {}),
            stats(500.0),
        ],
        facts=[(0.0, "vllm.version", "0.11.0"), (400.0, "vllm.version", "0.11.0")],
    )
    assert len(diary.epochs) == 1


def test_log_that_begins_in_the_middle_of_a_life(diary_of):
    diary = diary_of(
        events=[stats(0.0), stats(60.0), (100.0, "process_start", {}), stats(160.0)],
        facts=[(100.0, "vllm.version", "0.11.0")],
    )
    before, after = diary.epochs
    assert before.start is None
    assert str(before.version) == "0.11.0"  # of the neighbour: the same server
    assert after.start == 100.0


def test_restart_seen_by_metrics_alone(diary_of):
    diary = diary_of(
        [
            (RUNNING, {}, [(1e9 + 10.0 * n, 1.0) for n in range(60)]),
            (
                "process_start_time_seconds",
                {},
                [(1e9 + 10.0 * n, 1e9 - 50.0 if n < 30 else 1e9 + 280.0) for n in range(60)],
            ),
        ]
    )
    first, second = diary.epochs
    assert first.start == 1e9 - 50.0
    assert second.start == 1e9 + 280.0


def test_start_seen_by_both_is_one(diary_of):
    """The process starts some seconds before its first line."""
    diary = diary_of(
        [
            (RUNNING, {}, [(1e9 + 10.0 * n, 1.0) for n in range(10, 40)]),
            ("process_start_time_seconds", {}, [(1e9 + 100.0, 1e9 - 12.0)]),
        ],
        events=[(1e9, "process_start", {}), stats(1e9 + 120.0)],
    )
    assert [epoch.start for epoch in diary.epochs] == [1e9]


def test_caching_as_the_server_resolved_it_wins_over_the_flag(diary_of):
    facts = [
        (0.0, "flag.enable_prefix_caching", "True"),
        (1.0, "cache_config.enable_prefix_caching", "False"),
    ]
    assert epoch_of(diary_of(events=[stats(60.0)], facts=facts)).prefix_caching is False


def _stated_pool(version, model, *more):
    return [
        (0.0, "vllm.version", version),
        (0.0, "model.name", model),
        (1.0, "cache_config.block_size", "16"),
        (1.0, "pool.tokens", "4194304"),
        (1.0, "pool.max_concurrency", "32.0"),
        *more,
    ]


@pytest.mark.parametrize(
    ("version", "model", "blocks"),
    [
        ("0.20.0", "google/gemma-3-27b-it", 262144),
        ("0.21.0", "google/gemma-3-27b-it", None),
        ("0.21.0", "meta-llama/Llama-3.1-8B-Instruct", 262144),
    ],
    ids=["printed tokens", "printed concurrency", "full attention: the same"],
)
def test_no_blocks_from_the_size_a_hybrid_model_prints(diary_of, version, model, blocks):
    epoch = epoch_of(diary_of(events=[stats(60.0)], facts=_stated_pool(version, model)))
    assert (epoch.pool.tokens, epoch.pool.blocks) == (4194304, blocks)


def test_stated_blocks_win_over_the_size_printed_from_0_21(diary_of):
    said = (1.0, "cache_config.num_gpu_blocks", "100000")
    facts = _stated_pool("0.21.0", "unknown/model", said)
    epoch = epoch_of(diary_of(events=[stats(60.0)], facts=facts))
    assert (epoch.pool.tokens, epoch.pool.blocks) == (1_600_000, 100_000)
