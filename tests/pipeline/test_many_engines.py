"""Engines made up by the thousand are counted, not analysed one by one for hours."""

from forensics.config import Options
from forensics.diary.engines import MOST_ENGINES, map_engines
from forensics.pipeline import run_evidence


def test_engines_beyond_the_limit_are_named_as_not_evaluated(evidence_of):
    evidence = evidence_of(
        series=[
            ("vllm:num_requests_running", {"engine": str(rank)}, [(1_000.0, 1.0)])
            for rank in range(MOST_ENGINES + 88)
        ]
    )
    engines = map_engines(evidence)
    assert len(engines.keys) == MOST_ENGINES
    assert engines.left_out == 88


def test_the_answer_says_so(evidence_of, monkeypatch):
    monkeypatch.setattr("forensics.diary.engines.MOST_ENGINES", 2)
    points = [(1_000.0 + 15 * step, 1.0) for step in range(20)]
    evidence = evidence_of(
        series=[("vllm:num_requests_running", {"engine": rank}, points) for rank in "0123"]
    )
    analysis = run_evidence(evidence, Options()).analysis
    assert [view.engine for view in analysis.engines] == ["0", "1"]
    assert analysis.not_evaluated[-1].engine == "2 more engines"
