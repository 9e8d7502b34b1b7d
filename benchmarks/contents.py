"""Eviction against diversity where the log shows what the requests contained, and where not.

    python benchmarks/contents.py [--falls 150] [--first 50000]

Falls come from the model server of `scripts/simulated_falls.py`, with seeds that nothing was fitted
to. Each is judged twice by all rules: from its metrics, and from its metrics with the block hashes
that request lines give from the recording's beginning on (what was cached before is not in the
log). A fall is labelled by the larger of its parts; lost capacity with preemptions may be called
`preemption-cliff` or `eviction-pressure`. The target is 0.95 right with 0.80 answered. Intervals
are 95 % Wilson intervals.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.diagnosis import wilson
from forensics.attribution import Contents
from forensics.attribution.contents import read_contents
from forensics.evidence import EVENTS
from forensics.pipeline.judge import judge_engine
from forensics.verdict import INSUFFICIENT, Verdict, weigh
from scripts.simulated_falls import Fall, fall_of
from scripts.simulated_server import BLOCK

CAPACITY = ("eviction-pressure", "preemption-cliff")
DIVERSITY = ("prefix-diversity-loss",)


@dataclass(frozen=True)
class Judgement:
    """One fall, and the verdicts without and with contents.

    Attributes:
        clear: whether the larger part is at least twice the smaller one.
    """

    right: tuple[str, ...]
    clear: bool
    without: Verdict
    with_contents: Verdict


def contents_of_log(fall: Fall) -> Contents | None:
    """Read the block hashes of the requests as they stand in request lines."""
    rows = [
        {
            "source": 0, "offset": index, "clock": "utc", "stamp": one.at, "outer": None,
            "instance": None, "engine": None, "process": None, "kind": "request_received",
            "fields": json.dumps(
                {"block_hashes": one.hashes, "block": BLOCK, "unit": "tokens", "length": one.prompt}
            ),
        }
        for index, one in enumerate(fall.arrivals)
    ]  # fmt: skip
    return read_contents(pl.DataFrame(rows, schema=EVENTS), BLOCK)


def judged(fall: Fall, contents: Contents | None) -> Verdict:
    """Ask all rules about a fall's engine and weigh what they say."""
    engine = judge_engine(fall.timeline, (fall.timeline,), contents)
    falls = [case for case in engine.cases if case.episode is not None]
    return weigh(engine.judged, falls, engine.missing, None, engine.unseen)[0]


def judgements(first: int, count: int) -> Iterator[Judgement]:
    """Give as many judged falls as asked for, seed after seed."""
    seed, found = first, 0
    while found < count:
        fall = fall_of(seed)
        seed += 1
        if fall is None:
            continue
        found += 1
        larger = max(fall.capacity, fall.diversity)
        yield Judgement(
            CAPACITY if fall.capacity >= fall.diversity else DIVERSITY,
            larger >= 2 * min(fall.capacity, fall.diversity),
            judged(fall, None),
            judged(fall, contents_of_log(fall)),
        )


def figures(pairs: Sequence[tuple[Verdict, tuple[str, ...]]]) -> tuple[int, int, int]:
    """Give how many were right, how many answered, and how many there are."""
    answered = [(verdict, right) for verdict, right in pairs if verdict.cause != INSUFFICIENT]
    return sum(v.cause in right for v, right in answered), len(answered), len(pairs)


def surest(
    pairs: Sequence[tuple[Verdict, tuple[str, ...]]], share: float = 0.8
) -> Sequence[tuple[Verdict, tuple[str, ...]]]:
    """Keep the answers of highest confidence, as many as that share of all falls."""
    answered = [pair for pair in pairs if pair[0].cause != INSUFFICIENT]
    answered.sort(key=lambda pair: -pair[0].confidence)
    return answered[: round(share * len(pairs))]


def _line(title: str, pairs: Sequence[tuple[Verdict, tuple[str, ...]]]) -> str:
    right, answered, count = figures(pairs)
    return f"{title:34s} answered {_share(answered, count)}   right {_share(right, answered)}"


def _share(part: int, whole: int) -> str:
    low, high = wilson(part, whole)
    return f"{part / whole if whole else 0.0:.3f} [{low:.2f}, {high:.2f}] ({part}/{whole})"


def main(arguments: Sequence[str]) -> int:
    """Print answered and right, without and with contents."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--falls", type=int, default=150)
    parser.add_argument("--first", type=int, default=50_000, help="first seed")
    options = parser.parse_args(arguments)
    found = list(judgements(options.first, options.falls))
    for title, kept in (("all falls", found), ("larger part twice the other", None)):
        some = kept if kept is not None else [one for one in found if one.clear]
        print(_line(f"{title}, metrics", [(one.without, one.right) for one in some]))
        known = [(one.with_contents, one.right) for one in some]
        print(_line(f"{title}, contents", known))
        right, answered, _ = figures(surest(known))
        print(f"{'':34s} of these the surest 0.80 of all falls: right {_share(right, answered)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
