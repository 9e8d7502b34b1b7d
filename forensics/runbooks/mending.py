"""Writes the replacements that are certain into the files, until nothing is left to write."""

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from forensics.runbooks.linting import (
    FileResult,
    Located,
    Request,
    lint_text,
    read_text,
    recorded_metrics,
)

_ROUNDS = 5
"""A mended text may hold a finding that lay under another; more rounds than checks overlap."""


@dataclass(frozen=True, slots=True)
class Mended:
    """A file before and after.

    Attributes:
        replacements: how many were written.
    """

    path: str
    before: str
    after: str
    replacements: int

    def diff(self) -> str:
        """Return the change as a unified diff."""
        return "".join(
            line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
            for line in difflib.unified_diff(
                self.before.splitlines(keepends=True),
                self.after.splitlines(keepends=True),
                f"a/{self.path}",
                f"b/{self.path}",
            )
        )


def mend(
    paths: Sequence[Path], request: Request, keep: Callable[[FileResult], FileResult]
) -> list[Mended]:
    """Return what mending changes in some files; nothing is written.

    Args:
        paths: the files.
        request: of the run.
        keep: takes away findings that are not to be mended (the baseline's).
    """
    texts = [(path.as_posix(), read_text(path)) for path in paths]
    recorded = recorded_metrics((text for _, text in texts), request.settings)
    mended = []
    for path, before in texts:
        after, count = before, 0
        for _ in range(_ROUNDS):
            found = keep(lint_text(path, after, request, recorded)).findings
            after, written = replaced(after, found)
            count += written
            if not written:
                break
        if after != before:
            mended.append(Mended(path, before, after, count))
    return mended


def replaced(text: str, findings: Sequence[Located]) -> tuple[str, int]:
    """Return a text with the replacements of its findings, of overlapping ones the first only."""
    pieces: list[str] = []
    done = written = 0
    for located in sorted(findings, key=lambda one: (one.start, one.end)):
        replacement = located.finding.replacement
        if replacement is None or located.start < done:
            continue
        pieces += [text[done : located.start], replacement]
        done = located.end
        written += 1
    return "".join(pieces) + text[done:], written


def write(mended: Mended) -> None:
    """Write a mended file back, with the bytes that were not understood as they were."""
    Path(mended.path).write_bytes(mended.after.encode("utf-8", errors="surrogateescape"))
