"""A report made again → the file a person has worked on, with our sections renewed and theirs kept.

Ours stand between ``<!-- forensics:begin NAME -->`` and ``<!-- forensics:end NAME -->``, each alone
on its line. What is outside is never touched; a section whose marks a person removed stays away.
"""

import re

from forensics.errors import UsageError

_MARK = re.compile(r"^<!-- forensics:(begin|end) ([a-z_]+) -->[ \t]*\r?$", re.MULTILINE)


def sections(text: str) -> dict[str, tuple[int, int]]:
    """Find our sections: from the start of the begin mark to the end of the end mark.

    Raises:
        UsageError: a mark without its partner, or a name used twice.
    """
    found: dict[str, tuple[int, int]] = {}
    opened: tuple[str, int] | None = None
    for mark in _MARK.finditer(text):
        kind, name = mark.groups()
        line = text.count("\n", 0, mark.start()) + 1
        if kind == "begin":
            if opened is not None or name in found:
                raise UsageError(f"line {line}: section {name!r} begins twice or inside another")
            opened = (name, mark.start())
            continue
        if opened is None or opened[0] != name:
            raise UsageError(f"line {line}: the end mark of section {name!r} has no begin mark")
        found[name] = (opened[1], mark.end())
        opened = None
    if opened is not None:
        raise UsageError(f"section {opened[0]!r} has a begin mark and no end mark")
    return found


def renewed(fresh: str, written: str) -> str:
    """Put the fresh text of each section into the written file.

    Raises:
        UsageError: the file has none of our sections, so it is not ours to write into.
    """
    ours, theirs = sections(fresh), sections(written)
    if not ours.keys() & theirs.keys():
        raise UsageError(
            "the file exists and has no section of this report; name another file or remove it"
        )
    parts, at = [], 0
    for name, (start, end) in sorted(theirs.items(), key=lambda item: item[1]):
        if name not in ours:
            continue
        parts += [written[at:start], fresh[slice(*ours[name])]]
        at = end
    return "".join([*parts, written[at:]])
