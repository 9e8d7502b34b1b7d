"""Which report goes where: the format of each output, by `--format` or suffix, and the writing.

A report goes to the standard output unless files are named; a file is written beside its place and
then moved there, so that a broken run leaves no half report.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TextIO, assert_never

from forensics.analysis import Analysis
from forensics.errors import UsageError
from forensics.reports import text

DASH = Path("-")


class Format(StrEnum):
    """The formats of a report."""

    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"
    HTML = "html"
    SARIF = "sarif"
    JUNIT = "junit"
    GITHUB = "github"


_SUFFIXES = {
    ".txt": Format.TEXT,
    ".text": Format.TEXT,
    ".log": Format.TEXT,
    ".json": Format.JSON,
    ".md": Format.MARKDOWN,
    ".markdown": Format.MARKDOWN,
    ".html": Format.HTML,
    ".htm": Format.HTML,
    ".sarif": Format.SARIF,
    ".xml": Format.JUNIT,
}


@dataclass(frozen=True, slots=True)
class Output:
    """One report to write; `path` None is the standard output."""

    format: Format
    path: Path | None


@dataclass(frozen=True, slots=True)
class Look:
    """How reports look, whatever their format.

    Attributes:
        lang: "en" or "ko".
        no_color: the operator wants no colour at all.
        verbose / explain / quiet: how much the terminal report says.
        embed_charts: put the charts of Markdown into the text instead of beside it.
        interactive: put scripts for zoom and hover into HTML.
    """

    lang: str = "en"
    no_color: bool = False
    verbose: bool = False
    explain: bool = False
    quiet: bool = False
    embed_charts: bool = False
    interactive: bool = True


def outputs(format_name: str | None, paths: Sequence[Path]) -> list[Output]:
    """Decide formats: `--format` for the standard output, the suffix for a file it tells.

    Raises:
        UsageError: a suffix that names no format, with no `--format` to fall back on; two reports
            for the standard output.
    """
    stated = None if format_name is None else Format(format_name)
    if not paths:
        return [Output(stated or Format.TEXT, None)]
    decided = []
    for path in paths:
        if path == DASH:
            decided.append(Output(stated or Format.TEXT, None))
            continue
        name = path.name.lower()
        known = Format.SARIF if name.endswith(".sarif.json") else _SUFFIXES.get(Path(name).suffix)
        chosen = stated if len(paths) == 1 and stated is not None else known or stated
        if chosen is None:
            known_suffixes = " ".join(_SUFFIXES)
            raise UsageError(
                f"{path}: the suffix names no report format; use one of {known_suffixes}, "
                "or give --format"
            )
        decided.append(Output(chosen, path))
    if sum(output.path is None for output in decided) > 1:
        raise UsageError("only one report can go to the standard output")
    return decided


def write(
    analysis: Analysis,
    wanted: Sequence[Output],
    look: Look,
    *,
    stdout: TextIO | None = None,
    environ: Mapping[str, str] | None = None,
) -> None:
    """Write every wanted report."""
    stdout = stdout or sys.stdout
    environ = os.environ if environ is None else environ
    for output in wanted:
        if output.path is None:
            report = _rendered(analysis, output, look, stdout, environ)
            stdout.write(_encodable(report, stdout))
            stdout.flush()
        else:
            save(output.path, _rendered(analysis, output, look, None, environ))


def save(path: Path, content: str) -> None:
    """Put a text where it belongs in one move.

    Raises:
        UsageError: it cannot be written there.
    """
    try:
        if path.exists() and not path.is_file():
            path.write_text(content, encoding="utf-8")  # a pipe or a device stays what it is
            return
        path = path.resolve()  # what a link points to is replaced, not the link
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(content)
        # mkstemp gives 0600; a report is to be read by others like any file one writes.
        mask = os.umask(0)
        os.umask(mask)
        Path(name).chmod(0o666 & ~mask)
        Path(name).replace(path)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"{path}: cannot be written: {reason}") from error


def colour_wanted(stream: TextIO, look: Look, environ: Mapping[str, str]) -> bool:
    """Tell whether to colour: a terminal, and nobody said no (https://no-color.org)."""
    refused = look.no_color or environ.get("NO_COLOR") or environ.get("TERM") == "dumb"
    return not refused and stream.isatty()


def _rendered(
    analysis: Analysis,
    output: Output,
    look: Look,
    stream: TextIO | None,
    environ: Mapping[str, str],
) -> str:
    match output.format:
        case Format.TEXT:
            return text.render(analysis, _text_style(look, stream, environ))
        case Format.JSON:
            from forensics.reports import json

            return json.render(analysis)
        case Format.MARKDOWN:
            return _markdown(analysis, output.path, look)
        case Format.HTML:
            from forensics.reports import html

            return html.render(analysis, lang=look.lang, interactive=look.interactive)
        case Format.SARIF | Format.JUNIT | Format.GITHUB:
            return _for_ci(analysis, output.format, look.lang)
        case _:
            assert_never(output.format)


def _text_style(look: Look, stream: TextIO | None, environ: Mapping[str, str]) -> text.TextStyle:
    width = text.DEFAULT_WIDTH
    if stream is not None:
        width = shutil.get_terminal_size((text.DEFAULT_WIDTH, 24)).columns
    return text.TextStyle(
        width=width,
        lang=look.lang,
        colour=stream is not None and colour_wanted(stream, look, environ),
        ascii_only=stream is not None and look.lang == "en" and not _takes_unicode(stream),
        verbose=look.verbose,
        explain=look.explain,
        quiet=look.quiet,
    )


def _takes_unicode(stream: TextIO) -> bool:
    try:
        "▁→·".encode(getattr(stream, "encoding", None) or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _encodable(report: str, stream: TextIO) -> str:
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return report.encode(encoding, "backslashreplace").decode(encoding)


def _markdown(analysis: Analysis, path: Path | None, look: Look) -> str:
    from forensics.reports import markdown

    written = None if path is None else _written_before(path)
    beside = None if path is None or look.embed_charts else path.stem
    page = markdown.render(
        analysis, lang=look.lang, beside=beside, embed=look.embed_charts, written=written
    )
    if path is not None:
        for name, svg in page.charts.items():
            save(path.parent / name, svg)
    return page.text


def _written_before(path: Path) -> str | None:
    """Give the text that a person may have put into an earlier report; None when there is none."""
    try:
        return path.read_text(encoding="utf-8") if path.is_file() else None
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{path}: what is there cannot be read, and would be lost ({error})"
        ) from error


def _for_ci(analysis: Analysis, chosen: Format, lang: str) -> str:
    from forensics.ci_formats import github, junit, sarif
    from forensics.reports import ci

    renderers = {
        Format.SARIF: sarif.render,
        Format.JUNIT: junit.render,
        Format.GITHUB: github.render,
    }
    found, rules = ci.findings(analysis, lang)
    return renderers[chosen](found, rules, analysis.tool_version)
