"""`forensics alerts`: Prometheus alert rules and a Grafana dashboard tuned to one deployment."""

import sys
from pathlib import Path
from typing import Annotated

import typer


def alerts(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH...",
            help="Logs, metrics and folders of the incident, or one JSON saved by analyze.",
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="File for the alert rules; standard output without."),
    ] = None,
    dashboard: Annotated[
        Path | None,
        typer.Option("--dashboard", help="File for a Grafana dashboard (JSON to import)."),
    ] = None,
    lang: Annotated[str, typer.Option("--lang", help="Language of the texts: en or ko.")] = "en",
) -> None:
    """Write alert rules that would have told of this incident, in its vLLM version's metric names.

    Thresholds lie between what was usual before the incident and what was seen in it. Check the
    file with `promtool check rules`.
    """
    from forensics.catalog.messages import LANGUAGES
    from forensics.cli.render import save
    from forensics.cli.saved import analysis_of
    from forensics.config import Options
    from forensics.errors import UsageError
    from forensics.reports import alerts as rules
    from forensics.reports import dashboard as board

    if lang not in LANGUAGES:
        raise UsageError(f"--lang {lang}: choose one of {', '.join(LANGUAGES)}")
    analysis = analysis_of(paths, Options())
    text = rules.render(analysis, lang)
    if output is None:
        sys.stdout.write(text)
    else:
        save(output, text)
    if dashboard is not None:
        save(dashboard, board.render(analysis, lang))
