"""`forensics compare`: two recordings, two windows of one, or two saved results."""

import os
import shutil
import sys
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from forensics.cli.named_paths import named_path
from forensics.errors import UsageError

if TYPE_CHECKING:
    from forensics.analysis import Analysis


class CompareFormat(StrEnum):
    """Formats of a comparison."""

    TEXT = "text"
    MARKDOWN = "markdown"
    JSON = "json"


_SUFFIXES = {".md": CompareFormat.MARKDOWN, ".json": CompareFormat.JSON}


def compare(
    before: Annotated[
        Path,
        typer.Argument(
            metavar="BEFORE",
            parser=named_path,
            help="File or folder of the time before, or a JSON saved by analyze.",
        ),
    ],
    after: Annotated[
        Path | None,
        typer.Argument(
            metavar="AFTER",
            parser=named_path,
            help="The same of the time after; leave it out to compare with --at.",
        ),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option("--at", help="Split one recording at this time (ISO, UTC) into two windows."),
    ] = None,
    format_: Annotated[
        CompareFormat | None, typer.Option("--format", help="Text unless given.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Write to FILE; its suffix gives the format."),
    ] = None,
    lang: Annotated[str, typer.Option("--lang", help="Language: en or ko.")] = "en",
    no_color: Annotated[bool, typer.Option("--no-color", help="No colour, ever.")] = False,
) -> None:
    """Say what changed between two recordings, and whether the fix worked.

    Settings, traffic and figures are set side by side; a figure counts as better or worse only
    beyond its own noise.
    """
    from forensics.catalog.messages import LANGUAGES
    from forensics.cli.render import Look, colour_wanted, save
    from forensics.reports import compare as reports

    if lang not in LANGUAGES:
        raise UsageError(f"--lang {lang}: choose one of {', '.join(LANGUAGES)}")
    first, second = _sides(before, after, at)
    suffix = None if output is None else _SUFFIXES.get(output.suffix)
    match format_ or suffix or CompareFormat.TEXT:
        case CompareFormat.JSON:
            text = reports.render_json(first, second)
        case CompareFormat.MARKDOWN:
            text = reports.render_markdown(first, second, lang=lang)
        case CompareFormat.TEXT:
            colour = output is None and colour_wanted(
                sys.stdout, Look(no_color=no_color), os.environ
            )
            columns = min(120, shutil.get_terminal_size((100, 24)).columns)
            text = reports.render_text(first, second, lang=lang, columns=columns, colour=colour)
    if output is None:
        sys.stdout.write(text)
    else:
        save(output, text)


def _sides(before: Path, after: Path | None, at: str | None) -> "tuple[Analysis, Analysis]":
    from forensics.cli.analyze import instant
    from forensics.cli.saved import analysis_of, is_saved
    from forensics.config import Options

    options = Options()
    if at is None:
        if after is None:
            raise UsageError(
                "compare needs two sides: BEFORE AFTER, or one recording and --at TIME"
            )
        return analysis_of([before], options), analysis_of([after], options)
    if after is not None:
        raise UsageError("--at splits one recording: leave AFTER out")
    if is_saved(before):
        raise UsageError("--at needs the recording itself: a saved result has but one window")
    middle = instant(at, "--at")
    return (
        analysis_of([before], replace(options, until=middle)),
        analysis_of([before], replace(options, since=middle)),
    )
