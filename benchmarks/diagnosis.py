"""How right the diagnosis is on labelled incidents, beside two trivial ones.

    python benchmarks/diagnosis.py [--folder tests/incidents] [--split development|held-out]

Nothing was fitted on the held-out split. Intervals are 95 % Wilson intervals. A cause counts as
part of the answer from a share of 0.2 on, in labels and in verdicts. Incidents without a label
("none") are the controls: naming any cause of a hit-rate fall there is a false alarm.
"""

import argparse
import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.incident_set import ARCHIVES, Incident, incidents
from benchmarks.naive import exhausted_and_lost, largest_change, preemptions_then_residence
from forensics.pipeline import run
from forensics.verdict import HEALTHY, INSUFFICIENT, Verdict
from rules.regime import REGIME

CAUSES = {
    "preemption": "preemption-cliff",
    "eviction": "eviction-pressure",
    "diversity": "prefix-diversity-loss",
    "restart": "cold-cache",
    "cache_reset": "cold-cache",
    "metric_artefact": "counting-artifact",
}
THRASH = "preemption-thrash"
HIT_RATE_CAUSES = tuple(dict.fromkeys(CAUSES.values()))
PART = 0.2
# The preemption regime by the labels' own rule.
SATURATED, PREEMPTED = 0.25, 0.01
BINS = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0001)


@dataclass(frozen=True)
class Answer:
    """What one way of diagnosing said of one incident, beside the label.

    Attributes:
        truth: labelled causes with a share of at least 0.2, the primary first; empty for controls.
        cause: the cause named, `healthy` or `insufficient-evidence`.
        named: all causes that are part of the answer, the primary first.
        weighed: with `insufficient-evidence`, the candidates, most likely first.
        confidence: 0-1; None for ways that give none.
        onset_error_s: distance of the onset interval from the labelled change; None without onset.
        findings: every cause reported, whatever its part in the verdict.
        regime: whether a finding says so of all the time since the change.
        preempted: whether the preemption regime is in the label.
        preemptions: per request after the change, by the label.
        miscounted: whether the label says that the counters fell otherwise than the requests.
        broken: whether the label says that the preemption regime took hits, however few.
        ruled: whether the best single rule says so.
    """

    id: str
    truth: tuple[str, ...]
    cause: str
    named: tuple[str, ...]
    weighed: tuple[str, ...] = ()
    confidence: float | None = None
    onset_error_s: float | None = None
    findings: tuple[str, ...] = ()
    regime: bool = False
    preempted: bool = False
    preemptions: float = 0.0
    miscounted: bool = False
    broken: bool = False
    ruled: bool = False

    @property
    def right(self) -> bool:
        """Whether the cause named is the labelled primary.

        For a control, nothing, or preemption by itself where the label has it.
        """
        if self.truth:
            return self.cause == self.truth[0]
        return self.cause == HEALTHY or (self.cause == THRASH and self.preempted)

    @property
    def labelled(self) -> bool:
        """Whether the label can tell if the answer is right: it knows of no queue or slow step."""
        return bool(self.truth) or self.cause in (HEALTHY, THRASH, *HIT_RATE_CAUSES)

    @property
    def false_alarm(self) -> bool:
        """Whether a control got a cause of a hit-rate fall."""
        return not self.truth and self.cause in HIT_RATE_CAUSES


@dataclass
class Score:
    """The figures of one way of diagnosing; each is (successes, trials)."""

    answered: tuple[int, int] = (0, 0)
    accuracy: tuple[int, int] = (0, 0)
    first_right: tuple[int, int] = (0, 0)
    false_alarms: tuple[int, int] = (0, 0)
    precision: dict[str, tuple[int, int]] = field(default_factory=dict)
    recall: dict[str, tuple[int, int]] = field(default_factory=dict)
    onset_errors_s: list[float] = field(default_factory=list)
    calibration: list[tuple[float, float, int, int]] = field(default_factory=list)
    brier: float | None = None
    ece: float | None = None
    ece_by_chance: tuple[float, float] = (0.0, 0.0)


def labelled(truth: dict) -> tuple[str, ...]:
    """Give the causes of a label that count, the primary first."""
    if truth["primary"] == "none":
        return ()
    sizes: dict[str, float] = {}
    for name, size in truth["causes"].items():
        sizes[CAUSES[name]] = sizes.get(CAUSES[name], 0.0) + max(0.0, float(size))
    total = sum(sizes.values())
    primary = CAUSES[truth["primary"]]
    rest = [c for c, size in sizes.items() if c != primary and total and size / total >= PART]
    return (primary, *sorted(rest))


def diagnose(case: Incident) -> Answer:
    """Run the whole way on one incident."""
    analysis = run([str(path) for path in case.paths]).analysis
    verdict = analysis.verdict
    truth = case.truth
    weighed = tuple(cause for cause, _ in verdict.candidates)
    return Answer(
        id=case.id,
        truth=labelled(truth),
        cause=verdict.cause,
        named=_named(verdict),
        weighed=weighed,
        confidence=verdict.confidence,
        onset_error_s=_distance(verdict.onset, truth["change_at_unix"]),
        findings=tuple(dict.fromkeys(finding.cause for finding in analysis.findings)),
        regime=any(
            item.note is not None and item.note.key == REGIME
            for finding in analysis.findings
            for item in finding.exhibits
        ),
        preemptions=truth["preemptions_per_request"]["after"],
        miscounted="metric_artefact" in truth["causes"],
        broken="preemption" in truth["causes"],
        ruled=exhausted_and_lost(case),
        preempted=truth["saturated_time_share"] >= SATURATED
        and truth["preemptions_per_request"]["after"] >= PREEMPTED,
    )


def _named(verdict: Verdict) -> tuple[str, ...]:
    if verdict.cause == HEALTHY:
        return ()
    more = [item.cause for item in verdict.contributing if (item.share or 0.0) >= PART]
    first = [] if verdict.cause == INSUFFICIENT else [verdict.cause]
    return tuple(dict.fromkeys([*first, *more]))


def _distance(onset: tuple[float, float] | None, change: float) -> float | None:
    if onset is None:
        return None
    return max(0.0, onset[0] - change, change - onset[1])


def score(answers: Sequence[Answer]) -> Score:
    """Sum up the answers of one way of diagnosing."""
    result = Score()
    incidents_ = [a for a in answers if a.truth]
    controls = [a for a in answers if not a.truth]
    answered = [a for a in incidents_ if a.cause != INSUFFICIENT]
    result.answered = (len(answered), len(incidents_))
    result.accuracy = (sum(a.right for a in answered), len(answered))
    held = [a for a in incidents_ if a.cause == INSUFFICIENT and a.weighed]
    result.first_right = (sum(a.weighed[0] == a.truth[0] for a in held), len(held))
    result.false_alarms = (sum(a.false_alarm for a in controls), len(controls))
    for cause in HIT_RATE_CAUSES:
        said = [a for a in answers if cause in a.named and a.cause != INSUFFICIENT]
        true = [a for a in answers if cause in a.truth]
        result.precision[cause] = (sum(cause in a.truth for a in said), len(said))
        result.recall[cause] = (sum(cause in a.named for a in true), len(true))
    result.onset_errors_s = sorted(
        a.onset_error_s for a in answered if a.right and a.onset_error_s is not None
    )
    rated = [
        a for a in answers if a.confidence is not None and a.cause != INSUFFICIENT and a.labelled
    ]
    if rated:
        _calibrate(result, rated)
    return result


def _calibrate(result: Score, rated: Sequence[Answer]) -> None:
    said = np.array([a.confidence for a in rated], dtype=float)
    right = np.array([a.right for a in rated], dtype=float)
    result.brier = float(((said - right) ** 2).mean())
    for low, inside in _binned(said):
        count = int(inside.sum())
        result.calibration.append(
            (low, float(said[inside].mean()), int(right[inside].sum()), count)
        )
    result.ece = calibration_error(said, right)
    result.ece_by_chance = chance_error(said)


def _binned(said: np.ndarray) -> Iterator[tuple[float, np.ndarray]]:
    """Yield the lower bound of each bin that holds answers, and which those are."""
    for low, high in pairwise(BINS):
        inside = (said >= low) & (said < high)
        if inside.any():
            yield low, inside


def calibration_error(said: np.ndarray, right: np.ndarray) -> float:
    """Give the expected calibration error: how far bins of confidence are off, by their size.

    Args:
        said: confidences 0-1, shape (n,).
        right: 1 where the answer was right, else 0, shape (n,).
    """
    return sum(
        abs(float(right[inside].mean() - said[inside].mean())) * float(inside.mean())
        for _, inside in _binned(said)
    )


def chance_error(said: np.ndarray, draws: int = 1000) -> tuple[float, float]:
    """Give the error that perfectly calibrated answers would show: its mean, and 19 of 20 below."""
    random = np.random.default_rng(0)
    found = [calibration_error(said, random.random(said.size) < said) for _ in range(draws)]
    return float(np.mean(found)), float(np.quantile(found, 0.95))


def wilson(successes: int, trials: int) -> tuple[float, float]:
    """Give the 95 % Wilson interval of a share."""
    if trials == 0:
        return 0.0, 1.0
    z = 1.959964
    share = successes / trials
    middle = (share + z * z / (2 * trials)) / (1 + z * z / trials)
    spread = z * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials**2))
    spread /= 1 + z * z / trials
    return max(0.0, middle - spread), min(1.0, middle + spread)


def present(said: Sequence[bool], true: Sequence[bool]) -> tuple[tuple[int, int], tuple[int, int]]:
    """Give precision and recall of something reported, whatever its part in the verdict."""
    both = sum(a and b for a, b in zip(said, true, strict=True))
    return (both, sum(said)), (both, sum(true))


def errors(said: Sequence[bool], true: Sequence[bool]) -> tuple[tuple[int, int], tuple[int, int]]:
    """Give false positives of those without and misses of those with something."""
    pairs = list(zip(said, true, strict=True))
    without = [a for a, b in pairs if not b]
    missed = [not a for a, b in pairs if b]
    return (sum(without), len(without)), (sum(missed), len(missed))


def reported(answers: Sequence[Answer], *causes: str) -> list[bool]:
    """Tell per incident whether any of the causes is among its findings."""
    return [any(cause in a.findings for cause in causes) for a in answers]


def all_answers(cases: Iterable[Incident]) -> dict[str, list[Answer]]:
    """Ask the product and both baselines about every incident."""
    ways: dict[str, list[Answer]] = {"forensics": [], "largest change": [], "naive rule": []}
    for case in cases:
        ways["forensics"].append(diagnose(case))
        truth = labelled(case.truth)
        for name, way in (
            ("largest change", largest_change),
            ("naive rule", preemptions_then_residence),
        ):
            said = way(case)
            ways[name].append(Answer(case.id, truth, said, () if said == HEALTHY else (said,)))
    return ways


def report(title: str, ways: dict[str, list[Answer]]) -> str:
    """Write the tables of one split."""
    lines = [f"== {title}: {len(ways['forensics'])} incidents =="]
    for name, answers in ways.items():
        lines += ["", name, *_tables(score(answers))]
        if name == "forensics":
            preempted = [a.preempted for a in answers]
            regime = [a.regime for a in answers]
            lines += _present("preemption regime present", regime, preempted)
            spells = reported(answers, "preemption-cliff", THRASH)
            lines += _present("the same by any spell of it reported", spells, preempted)
            broken = [a.broken for a in answers]
            named = ["preemption-cliff" in a.named for a in answers]
            lines += _errors("preemption regime as a cause", named, broken)
            lines += _errors("the same by the best rule", [a.ruled for a in answers], broken)
            counting = reported(answers, "counting-artifact")
            lines += _present(
                "counting artefact present", counting, [a.miscounted for a in answers]
            )
    return "\n".join(lines) + "\n"


def _present(title: str, said: Sequence[bool], true: Sequence[bool]) -> list[str]:
    precision, recall = present(said, true)
    return [
        f"  {title}: precision {_share(precision)}",
        f"  {' ' * len(title)}  recall    {_share(recall)}",
    ]


def _errors(title: str, said: Sequence[bool], true: Sequence[bool]) -> list[str]:
    wrongly, missed = errors(said, true)
    return [f"  {title:28s} wrongly {_share(wrongly)}   missed {_share(missed)}"]


def _tables(result: Score) -> list[str]:
    lines = [
        f"  answered                     {_share(result.answered)}",
        f"  primary right when answered  {_share(result.accuracy)}",
        f"  false alarms on controls     {_share(result.false_alarms)}",
    ]
    if result.first_right[1]:
        lines.append(f"  first candidate right when not answered {_share(result.first_right)}")
    lines += [
        f"  {cause:22s} precision {_share(result.precision[cause])}"
        f"   recall {_share(result.recall[cause])}"
        for cause in HIT_RATE_CAUSES
    ]
    errors = result.onset_errors_s
    if errors:
        lines.append(
            f"  onset error of right answers: median {errors[len(errors) // 2]:.0f} s, "
            f"90 % within {errors[int(0.9 * (len(errors) - 1))]:.0f} s"
        )
    lines += calibration_lines(result)
    return lines


def calibration_lines(result: Score) -> list[str]:
    """Write how sure answers were and how often they were right; nothing where none says it."""
    if result.ece is None or result.brier is None:
        return []
    mean, most = result.ece_by_chance
    return [
        f"  Brier {result.brier:.3f}, expected calibration error {result.ece:.3f}",
        f"    (were all confidences exact: {mean:.3f} on average, 19 of 20 below {most:.3f})",
        *(
            f"    from {low:.1f}: said {said:.2f}, right {_share((right, count))}"
            for low, said, right, count in result.calibration
        ),
    ]


def _share(pair: tuple[int, int]) -> str:
    if pair[1] == 0:
        return "   -  (none)          "
    low, high = wilson(*pair)
    return f"{pair[0] / pair[1]:.3f} [{low:.2f}, {high:.2f}] ({pair[0]}/{pair[1]})"


def main(arguments: Sequence[str]) -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path("tests/incidents"))
    parser.add_argument("--split", choices=sorted(ARCHIVES))
    parser.add_argument("--wrong", action="store_true", help="list wrong answers (development)")
    options = parser.parse_args(arguments)
    for split in ARCHIVES if options.split is None else (options.split,):
        ways = all_answers(incidents(options.folder, split))
        print(report(split, ways))
        if options.wrong and split == "development":
            for answer in ways["forensics"]:
                if not answer.right:
                    print(f"  {answer.id}: {answer.truth} but {answer.cause} {answer.named}"
                          f" {answer.weighed} at {answer.confidence}")  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
