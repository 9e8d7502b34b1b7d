"""`forensics collect`: fetch the series that matter from a live server, or record its page."""

import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from forensics.cli.analyze import duration, instant
from forensics.cli.live import Pace, login, scrape, tell_warnings
from forensics.cli.progress import Progress
from forensics.errors import UsageError

if TYPE_CHECKING:
    from parsers.prometheus.api import Window
    from parsers.prometheus.api_http import Connection


def collect(
    url: Annotated[
        str,
        typer.Argument(
            help="Prometheus, Thanos, Mimir or VictoriaMetrics; with --scrape a /metrics page."
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="FILE", help="Where to write (dump.json or dump.prom)."
        ),
    ] = None,
    since: Annotated[
        str, typer.Option(help="From when: ISO time (UTC), or 6h, 30m before the end.")
    ] = "6h",
    until: Annotated[
        str | None, typer.Option(help="To when: ISO time (UTC); now unless given.")
    ] = None,
    selector: Annotated[
        str, typer.Option(help="Matchers that the vLLM series must fit, e.g. 'job=\"vllm\"'.")
    ] = "",
    step: Annotated[
        str | None,
        typer.Option(help="Resample to this step, e.g. 15s. Raw samples unless given."),
    ] = None,
    scrape_: Annotated[
        bool, typer.Option("--scrape", help="URL is a /metrics page: record it as time goes by.")
    ] = False,
    every: Annotated[str, typer.Option(help="With --scrape: time between scrapes.")] = "5s",
    for_: Annotated[str, typer.Option("--for", help="With --scrape: how long.")] = "10m",
    token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Bearer token; else FORENSICS_TOKEN, or FORENSICS_USER and _PASSWORD.",
        ),
    ] = None,
    header: Annotated[
        list[str] | None,
        typer.Option(metavar="'NAME: VALUE'", help="Further header, e.g. 'X-Scope-OrgID: team'."),
    ] = None,
    ca_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Certificates to trust.")
    ] = None,
    cert_file: Annotated[Path | None, typer.Option(metavar="FILE", help="Own certificate.")] = None,
    key_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Key of the own certificate.")
    ] = None,
    insecure: Annotated[bool, typer.Option("--insecure", help="Accept any certificate.")] = False,
    timeout: Annotated[str, typer.Option(help="Longest wait for the server.")] = "60s",
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no summary.")] = False,
) -> int:
    """Fetch the series that matter from a live server into a file that `analyze` reads.

    vLLM's series, what the same targets expose besides, and the GPUs of their hosts; raw samples,
    in pieces that stay below the server's limits. For a server that nobody scrapes, --scrape
    records its metrics page: forensics collect --scrape http://host:8000/metrics --for 10m
    """
    from parsers.prometheus.api import Window
    from parsers.prometheus.api_http import Connection, Tls

    connection = Connection(
        url,
        login(token_file, header),
        Tls(ca_file, cert_file, key_file, insecure),
        timeout_s=duration(timeout, "--timeout"),
    )
    if scrape_:
        _record(connection, output or Path("dump.prom"), every, for_, quiet=quiet)
        return 0
    end = instant(until, "--until") if until is not None else time.time()
    window = Window(
        _start(since, end), end, selector, duration(step, "--step") if step is not None else None
    )
    _fetch(connection, output or Path("dump.json"), window, quiet=quiet)
    return 0


def _start(since: str, end: float) -> float:
    """Read a time, or a duration before the end."""
    try:
        return end - duration(since, "--since")
    except UsageError:
        return instant(since, "--since")


def _fetch(connection: "Connection", output: Path, window: "Window", *, quiet: bool) -> None:
    """Fetch a window; the file appears when it is whole."""
    from parsers.prometheus.api import collect as ask

    part = output.with_name(output.name + ".part")
    try:
        with part.open("wb") as out, Progress(enabled=_shown(quiet)) as progress:
            got = ask(connection, window, out, progress.report)
        part.replace(output)
    except OSError as error:
        raise UsageError(f"{output} cannot be written: {error.strerror or error}") from error
    finally:
        part.unlink(missing_ok=True)
    tell_warnings(got.warnings)
    if not quiet:
        print(f"{output}: {got.points:,} points, {got.bytes / 1e6:,.1f} MB", file=sys.stderr)


def _record(connection: "Connection", output: Path, every: str, for_: str, *, quiet: bool) -> None:
    """Record a metrics page."""
    every_s, for_s = duration(every, "--every"), duration(for_, "--for")
    if every_s <= 0:
        raise UsageError("--every must be longer than nothing")

    def tell(taken: int, failed: int) -> None:
        if _shown(quiet):
            text = f"{taken} scrapes, {failed} failed, {output}; Ctrl-C ends"
            sys.stderr.write(f"\r\x1b[K{text[:79]}")
            sys.stderr.flush()

    try:
        taken, failed = scrape(replace(connection, retries=0), output, Pace(every_s, for_s), tell)
    except OSError as error:
        raise UsageError(f"{output} cannot be written: {error.strerror or error}") from error
    finally:
        if _shown(quiet):
            sys.stderr.write("\r\x1b[K")
    if not quiet:
        print(f"{output}: {taken} scrapes, {failed} failed", file=sys.stderr)


def _shown(quiet: bool) -> bool:
    """Tell whether progress goes to a terminal."""
    return not quiet and sys.stderr.isatty()
