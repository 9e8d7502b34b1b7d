"""`forensics analyze`: logs and metrics in, verdict and reports out."""

import math
import re
import sys
from dataclasses import replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from forensics.errors import UsageError

if TYPE_CHECKING:
    from forensics.analysis import Analysis
    from forensics.config import Options


class ReportFormat(StrEnum):
    """Formats of the report on standard output."""

    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"
    HTML = "html"
    SARIF = "sarif"
    JUNIT = "junit"
    GITHUB = "github"


class FailOn(StrEnum):
    """The mildest severity that makes the exit code 1."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


class Language(StrEnum):
    """Languages of reports."""

    EN = "en"
    KO = "ko"


_ORDER = ("info", "warning", "critical")


def analyze(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH…",
            help="Logs, metrics dumps, archives, or folders of them, in any order; - for standard "
            "input. Each file is recognised by its content.",
            show_default=False,
        ),
    ] = None,
    format_: Annotated[
        ReportFormat | None,
        typer.Option("--format", help="Report on standard output (text unless given)."),
    ] = None,
    output: Annotated[
        list[Path] | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Write a report to FILE; its suffix gives the format. May be repeated.",
        ),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            help="Judge only what came after this: ISO time (UTC), or 6h, 30m before the end."
        ),
    ] = None,
    until: Annotated[
        str | None, typer.Option(help="Judge only what came before this: ISO time (UTC).")
    ] = None,
    tz: Annotated[
        str | None,
        typer.Option(help="Zone of the log's clock, e.g. Asia/Seoul or +09:00, when you know it."),
    ] = None,
    gpu: Annotated[
        str | None, typer.Option(help="GPU, e.g. A100-80GB; wins over detection.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="Model name, or path of its config.json.")
    ] = None,
    vllm_version: Annotated[
        str | None, typer.Option(help="vLLM release, when nothing in the input states it.")
    ] = None,
    slo_ttft: Annotated[
        str | None, typer.Option(help="Target for time to first token, e.g. 2s.")
    ] = None,
    slo_itl: Annotated[
        str | None, typer.Option(help="Target for inter-token latency, e.g. 50ms.")
    ] = None,
    prometheus: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="Ask a live Prometheus, Thanos, Mimir or VictoriaMetrics."
        ),
    ] = None,
    selector: Annotated[
        str | None, typer.Option(help="Label matchers for --prometheus, e.g. 'job=\"vllm\"'.")
    ] = None,
    fail_on: Annotated[
        FailOn | None, typer.Option(help="Exit with 1 if a finding is at least this severe.")
    ] = None,
    export: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Save samples, events, facts and timeline as Parquet."),
    ] = None,
    lang: Annotated[Language, typer.Option(help="Language of the report.")] = Language.EN,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="All opinions, for and against; unknown line shapes.")
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show how the verdict was weighed.")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Only the verdict; no progress.")
    ] = False,
    no_color: Annotated[bool, typer.Option("--no-color", help="No colour, ever.")] = False,
    embed_charts: Annotated[
        bool, typer.Option("--embed-charts", help="Put charts into Markdown, not beside it.")
    ] = False,
    no_scripts: Annotated[
        bool, typer.Option("--no-scripts", help="HTML without scripts: still charts only, small.")
    ] = False,
    include_prompts: Annotated[
        bool, typer.Option("--include-prompts", help="Allow prompt text in reports.")
    ] = False,
    anonymize: Annotated[
        bool, typer.Option("--anonymize", help="Replace hosts, ids and model paths consistently.")
    ] = False,
    confidential: Annotated[
        bool, typer.Option("--confidential", help="Leave log text and names out of reports.")
    ] = False,
) -> int:
    """Say why a vLLM server became slow: verdict, proof, what to do, and the batch ceiling.

    Give the server's log and whatever holds its metrics: a query_range answer, a folder of scrapes,
    a TSDB dump. Only logs, or only metrics, work too; the report says what is then not known.
    """
    from forensics.cli import render
    from forensics.cli.command import command_line
    from forensics.config import Options
    from forensics.reports.redaction import redacted

    before_end = since is not None and _is_duration(since)
    options = Options(
        tz=tz,
        gpu=gpu,
        model=model,
        slo_ttft_s=duration(slo_ttft, "--slo-ttft") if slo_ttft is not None else None,
        slo_itl_s=duration(slo_itl, "--slo-itl") if slo_itl is not None else None,
        vllm_version=vllm_version,
        include_prompts=include_prompts,
        anonymize=anonymize,
        confidential=confidential,
        since=instant(since, "--since") if since is not None and not before_end else None,
        since_end_s=duration(since, "--since") if since is not None and before_end else None,
        until=instant(until, "--until") if until is not None else None,
    )
    wanted = render.outputs(format_.value if format_ else None, output or [])
    if output and format_ is None and not quiet:
        wanted = [*wanted, *render.outputs(None, [])]
    inputs = list(paths or [])
    if prometheus is None and not inputs:
        raise UsageError("nothing to analyze: give files or folders, or --prometheus URL")
    analysis = _run(inputs, prometheus, selector, options, export, quiet=quiet)
    analysis = replace(analysis, reproduce=command_line(inputs, prometheus, options))
    analysis = redacted(analysis, options)
    look = render.Look(
        lang=lang.value,
        no_color=no_color,
        verbose=verbose,
        explain=explain,
        quiet=quiet,
        embed_charts=embed_charts,
        interactive=not no_scripts,
    )
    render.write(analysis, wanted, look)
    return exit_code(analysis, fail_on)


def _run(
    inputs: list[str],
    prometheus: str | None,
    selector: str | None,
    options: "Options",
    export: Path | None,
    *,
    quiet: bool,
) -> "Analysis":
    from forensics.cli.progress import Progress
    from forensics.pipeline import run

    with Progress(enabled=not quiet and sys.stderr.isatty()) as progress:
        if prometheus is not None:
            from forensics.cli.live import fetched

            with fetched(prometheus, selector, options, progress) as path:
                outcome = run([*inputs, str(path)], options, progress.report)
        else:
            outcome = run(inputs, options, progress.report)
    if export is not None:
        from forensics.reports.export import export as save

        save(outcome.evidence, outcome.timeline, export, outcome.analysis, options)
    return outcome.analysis


def exit_code(analysis: "Analysis", fail_on: FailOn | None) -> int:
    """Give 1 when a finding is at least as severe as asked, else 0."""
    if fail_on is None:
        return 0
    least = _ORDER.index(fail_on.value)
    return int(any(_ORDER.index(finding.severity) >= least for finding in analysis.findings))


_DURATION = re.compile(r"^(\d+(?:\.\d+)?)\s*(ms|s|m|min|h|d)$")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


def _is_duration(text: str) -> bool:
    return _DURATION.match(text.strip()) is not None


def duration(text: str, option: str) -> float:
    """Read ``50ms``, ``2s``, ``30m``, ``6h`` as seconds.

    Raises:
        UsageError: it is no duration.
    """
    found = _DURATION.match(text.strip())
    if found is None:
        raise UsageError(f"{option} {text!r} is no duration; write it as 50ms, 2s, 30m or 6h")
    return float(found[1]) * _SECONDS[found[2]]


def instant(text: str, option: str) -> float:
    """Read an ISO time (UTC unless it names a zone) or Unix seconds as UTC seconds.

    Raises:
        UsageError: it is no time.
    """
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan  # not Unix seconds: an ISO time, then
    if math.isfinite(seconds):
        return seconds
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise UsageError(
            f"{option} {text!r} is no time; write it as 2026-11-29T17:33:05Z or as Unix seconds"
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return moment.timestamp()
