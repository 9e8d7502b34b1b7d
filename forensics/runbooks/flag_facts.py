"""What the checks of commands ask: which catalogued flags are given, for which releases."""

from collections.abc import Iterator
from dataclasses import dataclass

from forensics.catalog.flags_catalog import Flag, flag
from forensics.ci_formats.interface import Severity
from forensics.runbooks.history import speaks_of_the_past
from forensics.runbooks.interface import Document, Remark
from forensics.runbooks.serve import Argument, ServeCommand, plain_dashes
from forensics.runbooks.target import Target


@dataclass(frozen=True, slots=True)
class FlagUse:
    """A catalogued flag in a command, or alone in running text."""

    command: ServeCommand
    argument: Argument
    flag: Flag
    target: Target

    def remark(
        self, message: str, replacement: str | None = None, severity: Severity | None = None
    ) -> Remark:
        """Return a remark on the flag's name; a fix only where it stands as the catalogue says."""
        name = self.argument.name
        if not name.verbatim(0, len(name.text)):
            replacement = None
        return Remark(*name.span, message, replacement, severity)


def given(document: Document) -> Iterator[FlagUse]:
    """Yield the catalogued flags of a document; those that a text calls history are left out."""
    for command in document.commands:
        target = document.target_of(command)
        if not command.complete and speaks_of_the_past(document.lines, command.head.span[0]):
            continue
        for argument in command.arguments:
            found = flag(plain_dashes(argument.name.text))
            if found is not None:
                yield FlagUse(command, argument, found, target)


def instead(found: Flag) -> str:
    """Return what to do instead of a flag, as the end of a message."""
    if found.renamed_to is not None:
        return f" Use {found.renamed_to}."
    if found.replaced_by is None:
        return ""
    if found.replaced_by.startswith("nothing"):
        _, _, why = found.replaced_by.partition(": ")
        return f" Drop it: {why}." if why else " Drop it."
    return f" Use {found.replaced_by}."
