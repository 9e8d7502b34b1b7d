"""A few scrapes beside a fuller log: what lines report and counters count, in one meaning."""

import numpy as np
import pytest

from forensics.config import Options
from forensics.diary.engines import map_engines
from forensics.diary.write import write_diary
from forensics.episodes import hit_rate_episodes
from forensics.timeline.build import build_engine

LINE, SCRAPE, SPAN = 5.0, 15.0, 150.0


@pytest.fixture
def engine(evidence_of):
    """Ten scrapes of a server whose lines, as from 0.16.0 on, count computed prompt tokens only.

    Every 15 s: 60 prompts of 100 tokens; 80 of them hit until 75 s, 20 later.
    """
    scrapes = np.arange(0.0, SPAN, SCRAPE)
    hits = np.where(scrapes <= 75.0, 4800.0, 1200.0)
    counters = {
        "vllm:prompt_tokens_total": np.full(scrapes.size, 6000.0),
        "vllm:prefix_cache_queries_total": np.full(scrapes.size, 6000.0),
        "vllm:prefix_cache_hits_total": hits,
        "vllm:time_to_first_token_seconds_count": np.full(scrapes.size, 60.0),
        "vllm:generation_tokens_total": np.full(scrapes.size, 600.0),
    }
    series = [
        (metric, {}, list(zip(1e9 + scrapes, np.cumsum(steps), strict=True)))
        for metric, steps in counters.items()
    ]
    lines = [
        (
            1e9 + at,
            "stats_periodic",
            {
                "running": 4,
                "waiting": 0,
                "kv_usage_pct": 5.0,
                "prompt_tps": 80.0 if at <= 75.0 else 320.0,
                "generation_tps": 40.0,
            },
        )
        for at in np.arange(0.0, SPAN, LINE)
    ]
    evidence = evidence_of(series, lines)
    engines = map_engines(evidence)
    (key,) = engines.keys
    return build_engine(evidence, engines, key, write_diary(evidence, engines, key, Options()))


def test_lines_tell_when_and_counters_how_many_prompt_tokens_came(engine):
    assert engine.step_s == LINE
    rows = engine.grid.filter(engine.grid["time"] > 1e9)
    between = rows["prompt_tokens"].to_numpy()[:27].reshape(9, 3)
    assert between.sum(axis=1) == pytest.approx(np.full(9, 6000.0))
    assert between[0] == pytest.approx(np.full(3, 2000.0))


def test_windows_of_a_fall_hold_whole_intervals_between_scrapes(engine):
    (fall,) = hit_rate_episodes(engine)
    assert (fall.before, fall.level) == pytest.approx((0.8, 0.2))
    assert fall.onset == (1e9 + 75.0, 1e9 + 90.0)
    assert fall.baseline.start == pytest.approx(1e9, abs=0.1)
    assert fall.after.start == pytest.approx(1e9 + 75.0)
