"""Prompts in the log decide diversity: played against a cache without limit."""

import math
import random
from dataclasses import replace
from pathlib import Path

import pytest

import parsers
from forensics.attribution import attribute, contents_of
from forensics.attribution.contents import Contents, read_contents
from forensics.attribution.exact import ExactSplit
from forensics.config import Options
from forensics.diary.engines import map_engines
from forensics.diary.write import write_diary
from forensics.episodes import Episode, Span
from forensics.timeline.build import build_engine
from forensics.timeline.clocks import settle
from parsers.interface import ReadOptions

START_S = 9 * 3600  # seconds of the day at which the log begins


def stamp(second: int) -> str:
    at = START_S + second
    return f"INFO 01-15 {at // 3600:02d}:{at // 60 % 60:02d}:{at % 60:02d}"


def received(second: int, number: int, tokens: list[int]) -> str:
    """A line of 0.8.0-0.8.5 with request logging on."""
    return (
        f"{stamp(second)} [logger.py:39] Received request cmpl-{number:08x}-0: prompt: 'x', "
        "params: SamplingParams(n=1, temperature=0.7, max_tokens=64), "
        f"prompt_token_ids: {tokens}, lora_request: None, prompt_adapter_request: None."
    )


def stats(second: int, running: int, usage: float, rate: float) -> str:
    return (
        f"{stamp(second)} [loggers.py:111] Engine 000: Avg prompt throughput: 3000.0 tokens/s, "
        f"Avg generation throughput: 200.0 tokens/s, Running: {running} reqs, Waiting: 0 reqs, "
        f"GPU KV cache usage: {usage:.1f}%, Prefix cache hit rate: {rate:.1f}%"
    )


def write_log(path: Path, unique_from: int | None, seconds: int = 600) -> None:
    """One request per second: 32 shared blocks of 40 tenants, and 8 private ones."""
    rng = random.Random(7)
    lines = [f"{stamp(0)} [api_server.py:1043] vLLM API server version 0.8.5"]
    for second in range(seconds):
        tenant = second if second < 40 else rng.randrange(40)
        if unique_from is not None and second >= unique_from:
            shared = [rng.randrange(30_000) for _ in range(512)]
        else:
            shared = [tenant * 1000 + i for i in range(512)]
        private = [rng.randrange(30_000) for _ in range(128)]
        lines.append(received(second, second, shared + private))
        if second % 10 == 9:
            lines.append(stats(second, 4, 12.5, 60.0))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def read(path: Path):
    evidence = parsers.read([str(path)], ReadOptions())
    engines = map_engines(evidence)
    evidence = settle(evidence, engines).evidence
    key = engines.keys[0]
    diary = write_diary(evidence, engines, key, Options())
    return build_engine(evidence, engines, key, diary), contents_of(evidence, engines, key, diary)


def fall_at(contents: Contents, second: int, before: float, level: float) -> Episode:
    """The fall that counters would show; the first 200 s are left out, the cache fills."""
    start = float(contents.times[0])
    return Episode(
        engine="0",
        signal="hit_rate",
        onset=(start + second - 1, start + second),
        end=start + 600,
        recovered=False,
        baseline=Span(start + 200, start + second - 1),
        after=Span(start + second - 1, start + 600),
        before=before,
        level=level,
        error=0.01,
    )


def test_unique_prompts_are_diversity_entirely(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    write_log(log, unique_from=400)
    timeline, contents = read(log)
    assert contents is not None
    assert contents.unit == "tokens"
    assert contents.times.size == 600
    before = contents.attainable(Span(contents.times[0] + 200, contents.times[0] + 399))
    assert before is not None
    # All 40 tenants were seen by then: 512 of 640 tokens are found, always.
    assert before[0] == pytest.approx(0.8)
    episode = fall_at(contents, 400, before=0.8, level=0.0)
    found = attribute(timeline, episode, timeline.diary.epochs[0], contents)
    assert found.basis == "exact"
    assert found.decided
    assert found.share("diversity") == pytest.approx(1.0)
    assert found.share("capacity") == pytest.approx(0.0)
    (witness,) = found.witnesses
    assert witness.name == "request_contents"
    assert witness.log_odds < -4


def test_like_prompts_with_fewer_hits_are_capacity_entirely(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    write_log(log, unique_from=None)
    timeline, contents = read(log)
    assert contents is not None
    episode = fall_at(contents, 400, before=0.8, level=0.3)
    found = attribute(timeline, episode, timeline.diary.epochs[0], contents)
    assert found.basis == "exact"
    assert found.share("capacity") == pytest.approx(1.0, abs=0.01)


def test_parts_of_a_mixture_sum_to_the_fall() -> None:
    split = ExactSplit(before=0.8, after=0.6, error=0.02, fall=0.5)
    diversity, capacity = split.share(0.5)
    assert diversity.value == pytest.approx(0.2)
    assert capacity.value == pytest.approx(0.3)
    assert diversity.low == pytest.approx(0.16)
    assert diversity.high == pytest.approx(0.24)
    assert capacity.low == pytest.approx(0.26)
    assert math.exp(split.log_odds) == pytest.approx(0.61 / 0.41, rel=1e-6)


def test_a_larger_engine_block_finds_whole_blocks_only(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    tokens = list(range(50))
    lines = [received(0, 0, tokens), received(1, 1, tokens[:40] + [999] * 10)]
    log.write_text("\n".join(lines) + "\n", encoding="utf-8")
    evidence = parsers.read([str(log)], ReadOptions())
    events = settle(evidence, map_engines(evidence)).evidence.events
    small, large = read_contents(events, 16), read_contents(events, 32)
    assert small is not None
    assert large is not None
    # 40 equal tokens: two whole blocks of 16, one of 32.
    assert small.found.tolist() == [0.0, 32.0]
    assert large.found.tolist() == [0.0, 32.0]
    assert read_contents(events, 64).found.tolist() == [0.0, 0.0]


def test_a_sample_of_the_requests_is_not_enough(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    write_log(log, unique_from=400)
    timeline, contents = read(log)
    assert contents is not None
    episode = replace(
        fall_at(contents, 400, 0.8, 0.0), requests_before=4000.0, requests_after=4000.0
    )
    found = attribute(timeline, episode, timeline.diary.epochs[0], contents)
    assert found.basis == "score"
