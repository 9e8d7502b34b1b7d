"""`forensics lint`: checks runbooks, alert rules and dashboards against what vLLM really has."""

import os
import sys
from datetime import date
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, assert_never

import typer

import forensics
from forensics.cli.named_paths import named_path
from forensics.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from forensics.runbooks.linting import FileResult, LintResult
    from forensics.runbooks.settings import Settings


class LintFormat(StrEnum):
    """How the findings are printed."""

    TEXT = "text"
    JSON = "json"
    SARIF = "sarif"
    GITHUB = "github"
    JUNIT = "junit"


class FailOn(StrEnum):
    """The mildest severity that fails the run."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"
    NEVER = "never"


def lint(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH…",
            parser=named_path,
            help="Markdown, shell, rule files, dashboards, manifests, or folders of them.",
            show_default=False,
        ),
    ],
    vllm_version: Annotated[
        str | None,
        typer.Option(
            "--vllm-version",
            metavar="RELEASE",
            help="The release or range the documents are for, such as 0.11.2, 0.11, "
            "'>=0.9.2,<0.12'. Wins over what documents and settings say.",
            show_default=False,
        ),
    ] = None,
    output_format: Annotated[
        LintFormat, typer.Option("--format", help="How to print the findings.")
    ] = LintFormat.TEXT,
    fix: Annotated[
        bool,
        typer.Option("--fix", help="Write what is certain: new names, _total, ceiling tables."),
    ] = False,
    diff: Annotated[
        bool, typer.Option("--diff", help="Print what --fix would write, and write nothing.")
    ] = False,
    fail_on: Annotated[
        FailOn | None,
        typer.Option(
            "--fail-on",
            help="Exit with 1 from this severity on. [default: warning]",
            show_default=False,
        ),
    ] = None,
    baseline: Annotated[
        Path | None,
        typer.Option("--baseline", help="Hold back the findings in this file.", show_default=False),
    ] = None,
    write_baseline: Annotated[
        Path | None,
        typer.Option(
            "--write-baseline",
            help="Write today's findings to this file, to hold them back from now on.",
            show_default=False,
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            help="Settings file. [default: forensics.toml or pyproject.toml, here or above]",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Write to this file.", show_default=False),
    ] = None,
    no_color: Annotated[bool, typer.Option("--no-color", help="Print without colours.")] = False,
) -> None:
    """Check runbooks, alert rules and dashboards against the vLLM releases they are for.

    Finds metrics that were renamed or removed, flags that do nothing, queries that never fire,
    log patterns no release prints, and batch limits above what the GPU holds.
    """
    # Imported here, so that --help starts as fast for this command as for the others.
    from forensics.runbooks import baseline as baselines
    from forensics.runbooks import mending, reporting
    from forensics.runbooks.linting import Request, files, lint_files

    if fix and diff:
        raise UsageError("--fix writes and --diff does not: give one of them")
    settings = _settings(config, vllm_version)
    request = Request(settings, vllm_version, date.today())
    found = files(paths, settings)
    known = _known(baseline, settings)
    if fix or diff:
        changes = mending.mend(found, request, lambda entry: _kept(entry, known))
        for change in changes:
            if fix:
                mending.write(change)
            else:
                _print(change.diff(), output)
        if diff:
            raise typer.Exit(1 if changes else 0)
        if changes:
            count = sum(change.replacements for change in changes)
            typer.echo(f"Mended {count} place(s) in {len(changes)} file(s).", err=True)
    result = lint_files(found, request)
    if write_baseline is not None:
        count = baselines.write(write_baseline, result)
        typer.echo(f"Wrote {count} finding(s) to {write_baseline}.", err=True)
        raise typer.Exit(0)
    result = baselines.apply(result, known)
    for reason in result.unread:
        typer.echo(f"not read: {reporting.visible(reason)}", err=True)
    colour = not no_color and "NO_COLOR" not in os.environ and output is None
    _print(_rendered(result, output_format, colour=colour and sys.stdout.isatty()), output)
    raise typer.Exit(1 if _fails(result, fail_on, settings) else 0)


def _settings(config: Path | None, vllm_version: str | None) -> "Settings":
    from forensics.runbooks.settings import find, load
    from forensics.runbooks.target import parse_span

    if config is not None and not config.is_file():
        raise ConfigError(f"{config}: no such settings file")
    settings = load(config or find(Path.cwd()))
    if vllm_version is not None:
        parse_span(vllm_version)
    return settings


def _known(baseline: Path | None, settings: "Settings") -> dict[str, frozenset[str]]:
    from forensics.runbooks import baseline as baselines

    path = baseline or (Path(settings.baseline) if settings.baseline else None)
    return {} if path is None else baselines.load(path)


def _kept(entry: "FileResult", known: dict[str, frozenset[str]]) -> "FileResult":
    from forensics.runbooks import baseline as baselines
    from forensics.runbooks.linting import LintResult

    return baselines.apply(LintResult((entry,)), known).files[0]


def _rendered(result: "LintResult", output_format: LintFormat, *, colour: bool) -> str:
    from forensics.runbooks import reporting
    from forensics.runbooks.linting import rule_infos

    version = forensics.__version__
    match output_format:
        case LintFormat.TEXT:
            return reporting.text(result, colour=colour)
        case LintFormat.JSON:
            return reporting.as_json(result, version)
        case LintFormat.SARIF:
            from forensics.ci_formats import sarif

            return sarif.render(result.findings, rule_infos(), version)
        case LintFormat.GITHUB:
            from forensics.ci_formats import github

            return github.render(result.findings, rule_infos(), version)
        case LintFormat.JUNIT:
            from forensics.ci_formats import junit

            return junit.render(result.findings, rule_infos(), version)
    assert_never(output_format)


def _print(text: str, output: Path | None) -> None:
    data = text.encode("utf-8", "backslashreplace")
    if output is not None:
        output.write_bytes(data)
        return
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def _fails(result: "LintResult", fail_on: FailOn | None, settings: "Settings") -> bool:
    from forensics.ci_formats.interface import SEVERITIES

    least = settings.fail_on if fail_on is None else fail_on.value
    if least is None or least == "never":
        return False
    order = [str(severity) for severity in SEVERITIES]
    return any(order.index(finding.severity) >= order.index(least) for finding in result.findings)
