"""Ceiling tables: written, current, stale again when what they stand for changes."""

from datetime import date

import pytest

from forensics.capacity.plan import Wanted, ceiling_for
from forensics.runbooks.linting import Request, lint_text
from forensics.runbooks.mending import replaced
from forensics.runbooks.settings import Settings

REQUEST = Request(Settings(), None, date(2026, 11, 29))
OPEN = "<!-- forensics:ceiling gpu=A100-80GB model=meta-llama/Meta-Llama-3-8B context=2048 -->"
CLOSE = "<!-- /forensics:ceiling -->"


def mended(text: str) -> str:
    result = lint_text("a.md", text, REQUEST, frozenset())
    return replaced(text, result.findings)[0]


def ids(text: str) -> list[str]:
    result = lint_text("a.md", text, REQUEST, frozenset())
    return [one.finding.rule.id for one in result.findings]


def test_the_table_is_what_capacity_computes() -> None:
    plan = ceiling_for(
        Wanted(
            gpu="NVIDIA A100-SXM4-80GB",
            model="meta-llama/Meta-Llama-3-8B",
            context=2048.0,
            version=(0, 33, 0),
        )
    )
    assert plan.limit is not None and plan.pool is not None
    text = mended(f"{OPEN}\n{CLOSE}\n")
    assert f"**`--max-num-seqs {plan.limit.value:.0f}`**" in text
    assert f"about {plan.pool.tokens:,} tokens" in text
    for bound in plan.bounds:
        assert f"{bound.name}" in text and f"{bound.value:,.0f}" in text


def test_written_once_it_is_current() -> None:
    text = mended(f"# T\n\n{OPEN}\nold\n{CLOSE}\nrest\n")
    assert ids(text) == []
    assert mended(text) == text
    assert text.startswith(f"# T\n\n{OPEN}\n") and text.endswith(f"{CLOSE}\nrest\n")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("gpu=A100-80GB", "gpu=H200"),
        ("context=2048", "context=4096"),
        ("Meta-Llama-3-8B", "Meta-Llama-3-70B tp=4"),
        ("context=2048", "context=2048 kv-dtype=fp8"),
        ("context=2048", "context=2048 slo-itl=30ms"),
        ("context=2048", "context=2048 utilization=0.8"),
        ("# T", "<!-- forensics: vllm-version=0.19.0 -->"),
    ],
)
def test_stale_when_its_question_changes(before: str, after: str) -> None:
    text = mended(f"# T\n\n{OPEN}\n{CLOSE}\n").replace(before, after)
    assert ids(text) == ["RB501"]
    assert ids(mended(text)) == []


def test_a_changed_figure_is_stale() -> None:
    text = mended(f"{OPEN}\n{CLOSE}\n").replace("| bound |", "| Bound |")
    assert ids(text) == ["RB501"]


@pytest.mark.parametrize("indent", ["  ", "> ", "    "])
def test_indentation_and_quotes_are_kept(indent: str) -> None:
    text = mended(f"- a\n\n{indent}{OPEN}\n{indent}{CLOSE}\n")
    body = text.split(OPEN)[1].split(CLOSE)[0].split("\n")[1:-1]
    assert body and all(line.startswith(indent.rstrip()) for line in body if line)
    assert ids(text) == []


def test_windows_line_ends_are_kept() -> None:
    text = mended(f"{OPEN}\r\n{CLOSE}\r\n")
    assert "\n" not in text.replace("\r\n", "")
    assert ids(text) == []


def test_two_blocks() -> None:
    other = OPEN.replace("A100-80GB", "L4")
    text = mended(f"{OPEN}\n{CLOSE}\n\n{other}\n{CLOSE}\n")
    assert text.count("KV pool") == 2 and ids(text) == []


def test_what_the_tool_wrote_is_not_what_the_author_says() -> None:
    command = "\n    vllm serve meta-llama/Meta-Llama-3-8B --max-num-seqs 200\n"
    text = mended(f"{OPEN}\n{CLOSE}\n{command}")
    assert ids(text) == []  # 200 fits the A100 named by the mark
    assert ids(text.replace("--max-num-seqs 200", "--max-num-seqs 900")) == ["RB207"]
