"""Analysis → the answer in a terminal: read at three in the morning, also through a pipe.

Order: verdict, what to do now, signals, evidence, what else it could be, ceiling with its
arithmetic, coverage. Colour only repeats what the words say. Sections live in
`text_verdict` and `text_ceiling`.
"""

from collections.abc import Callable
from dataclasses import dataclass

from forensics.analysis import Analysis
from forensics.reports import folders, text_ceiling, text_verdict
from forensics.reports.layout import Paint
from forensics.reports.text_page import Page

NARROWEST, WIDEST = 60, 120
DEFAULT_WIDTH = 100
_GLYPHS = str.maketrans(
    {
        "–": "-",
        "→": ">",
        "·": ".",
        "…": "~",
        "×": "x",
        "²": "^2",
        "√": "sqrt",
        "≥": ">=",
        "≤": "<=",
        "─": "-",
        "▼": "v",
        "≈": "~",
        "±": "+-",
    }
)


@dataclass(frozen=True, slots=True)
class TextStyle:
    """How to write.

    Attributes:
        width: columns of the terminal; held between 60 and 120.
        lang: "en" or "ko".
        colour: whether to use ANSI colour.
        ascii_only: for streams that cannot take more (English only).
        verbose: all findings with for and against, and the details of coverage.
        explain: how each opinion entered the verdict.
        quiet: the verdict, the first action and the limit only.
    """

    width: int = DEFAULT_WIDTH
    lang: str = "en"
    colour: bool = False
    ascii_only: bool = False
    verbose: bool = False
    explain: bool = False
    quiet: bool = False


def render(analysis: Analysis, style: TextStyle | None = None) -> str:
    """Write the whole answer as text, with a newline at its end."""
    style = style or TextStyle()
    page = Page(
        width=min(WIDEST, max(NARROWEST, style.width)),
        lang=style.lang,
        paint=Paint(style.colour),
        ascii_only=style.ascii_only,
        verbose=style.verbose,
        folder=folders.shared_folder(analysis),
    )
    analysis = folders.without_folder(analysis)
    blocks = [block for part in _parts(style) if (block := part(analysis, page))]
    shown = "\n\n".join("\n".join(block) for block in blocks) + "\n"
    if not style.ascii_only:
        return shown
    return shown.translate(_GLYPHS).encode("ascii", "replace").decode()


def _parts(style: TextStyle) -> list[Callable[[Analysis, Page], list[str]]]:
    if style.quiet:
        return [text_verdict.verdict, text_verdict.first_action, text_ceiling.limit_only]
    parts = [
        text_verdict.header,
        text_verdict.verdict,
        text_verdict.actions,
        *(() if style.verbose else (text_verdict.also_observed,)),
        text_verdict.signals,
        text_verdict.evidence,
        text_verdict.parts,
        text_verdict.runner_up,
        text_verdict.fleet,
    ]
    if style.verbose:
        parts.append(text_verdict.opinions)
    if style.explain:
        parts.append(text_verdict.weighing)
    return [
        *parts,
        text_ceiling.impact,
        text_ceiling.ceiling,
        text_ceiling.sweep,
        text_ceiling.coverage,
        text_ceiling.clocks,
        text_ceiling.not_evaluated,
        text_ceiling.footer,
    ]
