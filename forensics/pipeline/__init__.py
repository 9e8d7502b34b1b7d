"""Paths and options → Analysis: the whole way, engine by engine, and the merge at its end."""

from forensics.pipeline.analyze import Outcome, analyze, run, run_evidence

__all__ = ["Outcome", "analyze", "run", "run_evidence"]
