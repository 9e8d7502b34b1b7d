"""Findings that were there when the tool came, kept apart from new ones.

The file is JSON: for each path the fingerprints of its findings. A fingerprint holds the check, the
text and its line, not the line's number, so it survives edits elsewhere in the file.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from forensics.errors import ConfigError
from forensics.runbooks.linting import LintResult

_VERSION = 1


def load(path: Path) -> dict[str, frozenset[str]]:
    """Return the fingerprints by path.

    Raises:
        ConfigError: when the file is no baseline.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["version"] != _VERSION:
            raise ConfigError(f"{path}: a baseline of another version; write it anew")
        return {str(name): frozenset(map(str, known)) for name, known in document["files"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(f"{path}: not a baseline that can be read ({error})") from error


def write(path: Path, result: LintResult) -> int:
    """Write the findings of a run as the baseline; return how many."""
    known = {
        entry.path: sorted(located.finding.fingerprint for located in entry.findings)
        for entry in result.files
        if entry.findings
    }
    document = {"version": _VERSION, "files": known}
    path.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return sum(map(len, known.values()))


def apply(result: LintResult, known: Mapping[str, Sequence[str] | frozenset[str]]) -> LintResult:
    """Return a run without the findings that a baseline knows."""
    kept = []
    count = result.baselined
    for entry in result.files:
        old = known.get(entry.path, ())
        fresh = tuple(one for one in entry.findings if one.finding.fingerprint not in old)
        count += len(entry.findings) - len(fresh)
        kept.append(replace(entry, findings=fresh))
    return replace(result, files=tuple(kept), baselined=count)
