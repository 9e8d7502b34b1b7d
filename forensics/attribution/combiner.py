"""The small learned combiner: readings → log-odds of "capacity" against "diversity".

A regularised logistic regression whose signs are fixed by physics; its weights are data that people
review (`weights.toml`), made by `scripts/train_attribution.py`. It adds up: what each witness says
is an exhibit of its own, and one that was not observed says nothing.
"""

import math
import tomllib
from collections.abc import Mapping, Set
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from forensics.attribution.readings import Reading
from forensics.attribution.records import Witness


@dataclass(frozen=True, slots=True)
class Weight:
    """How one witness is weighed.

    Attributes:
        low / high: the reading is clipped to this range, so that no single one decides alone.
        center: reading that speaks for neither side.
        slope: log-odds towards capacity per unit of the reading.
        core: whether it is read wherever usage, running requests and tokens are watched.
    """

    low: float
    high: float
    center: float
    slope: float
    core: bool

    @property
    def reach(self) -> float:
        """By how much it can move the log-odds."""
        return abs(self.slope) * (self.high - self.low)

    def log_odds(self, value: float) -> float:
        """Weigh one reading."""
        return self.slope * (min(self.high, max(self.low, value)) - self.center)


@dataclass(frozen=True, slots=True)
class Combiner:
    """The weights of all witnesses, and from which probability on an answer is given.

    Attributes:
        intercept: log-odds when every witness is neutral.
        answer_at: the larger cause is named from this probability on.
        weights: by name of the witness.
    """

    intercept: float
    answer_at: float
    weights: Mapping[str, Weight]

    def weigh(self, readings: Mapping[str, Reading]) -> tuple[float, tuple[Witness, ...]]:
        """Add up the witnesses.

        Returns:
            Total log-odds towards capacity, and the witnesses, the strongest first.
        """
        witnesses = [
            Witness(
                name, reading.value, reading.before, reading.after, weight.log_odds(reading.value)
            )
            for name, weight in self.weights.items()
            if (reading := readings.get(name)) is not None and math.isfinite(reading.value)
        ]
        total = self.intercept + sum(w.log_odds for w in witnesses)
        heard = self._heard({witness.name for witness in witnesses})
        if heard < 1.0:
            lost = total * (math.sqrt(heard) - 1.0)
            witnesses.append(Witness("few_witnesses", heard, None, heard, lost))
            total += lost
        witnesses.sort(key=lambda witness: (-abs(witness.log_odds), witness.name))
        return total, tuple(witnesses)

    def _heard(self, names: Set[str]) -> float:
        """Give the part 0-1 of the core witnesses that was heard, each by what it can move.

        Those left alone would be as sure as all together; with the root of this they are right as
        often as they say on labelled falls whose other witnesses were taken away.
        """
        core = {name: weight.reach for name, weight in self.weights.items() if weight.core}
        whole = sum(core.values())
        return sum(core[name] for name in core if name in names) / whole if whole > 0 else 1.0


def probability(log_odds: float) -> float:
    """Turn log-odds into a probability, 0-1."""
    return 1.0 / (1.0 + math.exp(-min(30.0, max(-30.0, log_odds))))


@cache
def combiner() -> Combiner:
    """Read the shipped weights."""
    data = tomllib.loads(files(__package__).joinpath("weights.toml").read_text("utf-8"))
    return Combiner(
        intercept=float(data["intercept"]),
        answer_at=float(data["answer_at"]),
        weights={
            name: Weight(
                float(row["low"]),
                float(row["high"]),
                float(row["center"]),
                float(row["slope"]),
                bool(row["core"]),
            )
            for name, row in data["witness"].items()
        },
    )
