"""`forensics rules` and `forensics explain`: the causes, from the rules' own docstrings."""

import inspect
import sys
from typing import Annotated

import typer

from forensics.errors import UsageError


def rules() -> None:
    """List the causes that can be told apart, with their ids."""
    from rules import RULES

    width = max(len(rule.name) for rule in RULES)
    for rule in RULES:
        typer.echo(f"{rule.id:<7}{rule.name:<{width + 2}}{rule.title}")


def explain(
    rule_id: Annotated[str, typer.Argument(metavar="ID", help="An id such as PC101, or a name.")],
) -> None:
    """Explain one cause: what it detects, how it decides, when it is silent, what to do."""
    from rules import RULES

    wanted = rule_id.strip().lower()
    for rule in RULES:
        if wanted in (rule.id.lower(), rule.name):
            text = inspect.getdoc(sys.modules[type(rule).__module__]) or ""
            typer.echo(text)
            return
    from forensics.runbooks.checks import CHECKS

    for check in CHECKS:  # the checks of `forensics lint` have pages of the same kind
        if wanted in (check.id.lower(), check.name):
            typer.echo(check.page.strip())
            return
    names = ", ".join(rule.id for rule in RULES)
    raise UsageError(f"no cause {rule_id!r}; known: {names}")
