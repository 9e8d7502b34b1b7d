"""What to do is spelled as in the release, and its effect is reckoned from the case's figures."""

from dataclasses import replace

import polars as pl
import pytest

from forensics.attribution import Figures
from forensics.catalog.messages import render
from forensics.diary import EngineDiary, Epoch, KvPool, Stated, Version
from forensics.timeline import EngineTimeline
from forensics.timeline.grid import SCHEMA
from rules.actions import (
    admission_limit,
    grow_pool,
    larger_pool,
    potential,
    route_by_prefix,
    spelled,
)
from rules.interface import Case

EMPTY = pl.DataFrame(schema=SCHEMA)
BEFORE = Figures(600.0, 40, hit_per_request=2400.0, miss_per_request=600.0, prefill_s=0.12)
AFTER = Figures(600.0, 40, hit_per_request=600.0, miss_per_request=2400.0, prefill_s=0.48,
                usage=0.9, usage_per_running=0.03)  # fmt: skip


def case(release: str | None, **more: object) -> Case:
    version = Version.parse(release) if release else None
    epoch = replace(Epoch(None, None, version=version, generation="V1"), **more)
    diary = EngineDiary("0", None, "0", (epoch,))
    timeline = EngineTimeline("0", None, 10.0, EMPTY, EMPTY, {}, (), diary)
    return Case(timeline, epoch, None, None, (0.0, 600.0), BEFORE, AFTER)


@pytest.mark.parametrize(
    ("release", "flag", "written"),
    [
        ("0.28.0", "--max-num-queued-reqs", None),
        ("0.29.0", "--max-num-queued-reqs", "--max-num-queued-reqs 7"),
        ("0.34.0", "--max-num-queued-reqs", "--max-num-queued-reqs 7"),
        (None, "--max-num-queued-reqs", None),
        (None, "--max-num-seqs", "--max-num-seqs 7"),
        ("0.11.2", "--kv-offloading-size", "--kv-offloading-size 7"),
        ("0.10.2", "--kv-offloading-size", None),
        ("0.32.0", "--no-such-flag", None),
    ],
)
def test_flags_as_the_release_takes_them(release, flag, written):
    assert spelled(case(release).epoch, flag, "7") == written


def test_admission_is_a_flag_of_the_server_from_0_29():
    assert admission_limit(case("0.29.0"), 1).command == "--max-num-queued-reqs <limit>"
    assert admission_limit(case("0.28.0"), 1).command is None


def test_routing_says_what_it_saves_of_this_prompt():
    """1,800 tokens of 3,000 come back; at 0.2 ms each that is 360 ms of 480 ms."""
    effect = render(route_by_prefix(case("0.32.0"), 1).effect)
    assert "Of prompts of 3,000 tokens, 1,800 more" in effect
    assert "about 360 ms less of 480 ms prefill" in effect


def test_routing_without_prefill_times_promises_no_figure():
    blind = replace(case("0.8.5"), after=replace(AFTER, prefill_s=None))
    assert route_by_prefix(blind, 1).effect.key == "effect.route"


def test_fp8_says_what_twice_the_pool_holds():
    action = grow_pool(case("0.32.0", pool=KvPool(tokens=100_000)), 1)
    assert action.command == "--kv-cache-dtype fp8"
    effect = render(action.effect)
    assert "100,000 to 200,000" in effect
    assert "about 66 running requests of this size instead of 33" in effect
    assert "110,000 tokens for idle prefixes instead of 10,000" in effect


def test_early_v1_has_no_fp8_cache():
    assert grow_pool(case("0.8.1"), 1).command is None


def test_every_way_to_more_blocks_and_none_twice():
    size = {"kv_gib": Stated("20.5", None)}
    now = case("0.32.0", pool=KvPool(tokens=100_000), memory=size, tensor_parallel_size=2)
    keys = [(a.text.key, a.command) for a in larger_pool(now, 3)]
    assert keys == [
        ("action.fp8", "--kv-cache-dtype fp8"),
        ("action.replicas", None),
        ("action.offload", "--kv-offloading-size 41"),
    ]
    done = replace(now, epoch=replace(now.epoch, kv_cache_dtype="fp8_e4m3"))
    assert [a.text.key for a in larger_pool(done, 3)] == ["action.replicas", "action.offload"]


@pytest.mark.parametrize(
    ("release", "said"),
    [
        ("0.9.2", "unless --disable-log-requests is given"),
        ("0.10.1", "(--enable-log-requests)"),
        ("0.11.1", "(VLLM_LOGGING_LEVEL=DEBUG --enable-log-requests)"),
    ],
)
def test_prompts_get_into_the_log_as_the_release_has_it(release, said):
    assert said in render(potential(case(release)))
