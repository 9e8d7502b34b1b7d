"""Opinions → verdict: one primary cause, contributing ones with shares, or an honest abstention."""

from forensics.verdict.records import (
    ANSWERED,
    HEALTHY,
    INSUFFICIENT,
    OBSERVED,
    PART_OF_ANSWER,
    Contribution,
    Judged,
    RunnerUp,
    Verdict,
    Weighing,
)
from forensics.verdict.weigh import weigh

__all__ = [
    "ANSWERED",
    "HEALTHY",
    "INSUFFICIENT",
    "OBSERVED",
    "PART_OF_ANSWER",
    "Contribution",
    "Judged",
    "RunnerUp",
    "Verdict",
    "Weighing",
    "weigh",
]
