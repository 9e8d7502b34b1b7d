"""`forensics`: the list of commands, the exit codes, and the only place that catches our errors.

Commands are imported when they are called: help and lint must start in a blink, and most of the
start-up time of an analysis is the import of its libraries.
"""

import functools
import importlib
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperGroup

from forensics import __version__
from forensics.errors import ForensicsError, InputError, UsageError

if TYPE_CHECKING:
    import typer._click as click  # typer carries its own copy; no name of it is public

EXIT_FINDINGS, EXIT_USAGE, EXIT_INPUT, EXIT_INTERRUPTED = 1, 2, 3, 130
EPILOG = (
    "Exit codes: 0 done, nothing at or above --fail-on; 1 findings at or above it; "
    "2 usage or configuration; 3 no input could be read; 130 interrupted."
)


@dataclass(frozen=True, slots=True)
class Command:
    """One command: its name, the function behind it, and its line in the list."""

    name: str
    module: str
    function: str
    summary: str


COMMANDS: tuple[Command, ...] = (
    Command(
        "analyze", "analyze", "analyze", "Say why a server became slow, from logs and metrics."
    ),
    Command(
        "ceiling", "ceiling", "ceiling", "Recommend max_num_seqs for a GPU, model and traffic."
    ),
    Command("compare", "compare", "compare", "Say what changed between two recordings."),
    Command("collect", "collect", "collect", "Fetch the series that matter from a live server."),
    Command("lint", "lint", "lint", "Check runbooks, alert rules and dashboards."),
    Command("alerts", "alerts", "alerts", "Write alert rules tuned to this deployment."),
    Command("rules", "catalogue", "rules", "List the causes that can be told apart."),
    Command("explain", "catalogue", "explain", "Explain one cause: how it is decided, what to do."),
)


class LazyGroup(TyperGroup):
    """A group that knows its commands by name and imports one only when it is called."""

    def list_commands(self, ctx: "click.Context") -> list[str]:
        """Give the names in the order people need them."""
        return [command.name for command in COMMANDS]

    def get_command(self, ctx: "click.Context", cmd_name: str) -> "click.Command | None":
        """Import a command; None for an unknown name."""
        known = next((command for command in COMMANDS if command.name == cmd_name), None)
        if known is None:
            return None
        module = importlib.import_module(f"forensics.cli.{known.module}")
        function: Callable[..., Any] = getattr(module, known.function)
        app = typer.Typer(add_completion=False, rich_markup_mode=None)
        app.command(known.name, epilog=EPILOG, context_settings=_SETTINGS)(_exiting(function))
        command = typer.main.get_command(app)
        command.name = known.name
        return command

    def format_commands(self, ctx: "click.Context", formatter: "click.HelpFormatter") -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(command.name, command.summary) for command in COMMANDS])


def _exiting(function: Callable[..., Any]) -> Callable[..., None]:
    """Make the number that a command returns the exit code of the process."""

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - whatever the command takes
        try:
            code = function(*args, **kwargs)
            sys.stdout.flush()
        except BrokenPipeError:
            # The reader (head, less) has seen enough; what is still buffered must not raise again.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from None
        raise typer.Exit(code if isinstance(code, int) else 0)

    return run


_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
app = typer.Typer(
    cls=LazyGroup,
    add_completion=False,
    rich_markup_mode=None,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings=_SETTINGS,
    epilog=EPILOG,
)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"forensics {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version and stop."
    ),
) -> None:
    """Say why a vLLM server became slow, prove it line by line, and name its batch ceiling.

    Start with: forensics analyze LOGS METRICS
    """


def main() -> None:
    """Run the command line and turn errors into messages and exit codes."""
    try:
        typer.main.get_command(app)(prog_name="forensics")
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(EXIT_INTERRUPTED)
    except InputError as error:
        _tell(str(error))
        sys.exit(EXIT_INPUT)
    except UsageError as error:
        _tell(str(error))
        sys.exit(EXIT_USAGE)
    except ForensicsError as error:
        _tell(f"internal error: {error}; please report it")
        sys.exit(EXIT_USAGE)
    except OSError as error:
        _tell(f"{error.filename or 'output'}: {error.strerror or error}")
        sys.exit(EXIT_USAGE)
    except Exception as error:  # python would exit with 1, which means findings
        if os.environ.get("FORENSICS_DEBUG"):
            raise
        _tell(
            f"internal error ({type(error).__name__}: {error}); please report it "
            "(FORENSICS_DEBUG=1 shows where)"
        )
        sys.exit(EXIT_USAGE)


def _tell(message: str) -> None:
    """Say what went wrong; names from input may hold what acts on a terminal."""
    from forensics.reports.plain import plain

    for number, line in enumerate(message.split("\n")):
        print(plain(line) if number else f"forensics: {plain(line)}", file=sys.stderr)
