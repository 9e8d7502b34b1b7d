"""Paths into findings: reads the files, asks the checks, holds back what is to be held back."""

import hashlib
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from forensics.ci_formats.interface import Finding, Place, RuleInfo, Severity
from forensics.errors import InputError
from forensics.runbooks.checks import CHECKS
from forensics.runbooks.checks.rb901_snooze_expired import CHECK as EXPIRED
from forensics.runbooks.checks.rb901_snooze_expired import expired
from forensics.runbooks.checks.rb902_directive_unknown import CHECK as UNKNOWN
from forensics.runbooks.checks.rb902_directive_unknown import faults
from forensics.runbooks.directives import Directive
from forensics.runbooks.documents.reading import KINDS, read
from forensics.runbooks.interface import Document, Remark, RunbookCheck
from forensics.runbooks.settings import Settings, matches
from forensics.runbooks.suppression import Suppression, held

_SKIPPED = frozenset(
    {".git", ".hg", ".svn", "node_modules", ".venv", "venv", "__pycache__", ".tox"}
)
_MAX_BYTES = 20 << 20
"""Larger files are no runbooks; a guess, far above any dashboard seen."""
_PARALLEL_FROM = 64
"""Files from which on a second process is worth its start."""
_RECORDED = re.compile(r"[\"']?record[\"']?\s*:\s*[\"']?(vllm[\w:]+)")


@dataclass(frozen=True, slots=True)
class Request:
    """What a run was asked for.

    Attributes:
        settings: that hold before a document says otherwise.
        vllm_version: from the command line; wins over what documents say.
        today: the day by which snoozes expire.
    """

    settings: Settings
    vllm_version: str | None
    today: date


@dataclass(frozen=True, slots=True)
class Located:
    """A finding with its offsets in the file, for mending it."""

    finding: Finding
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Snoozed:
    """A finding held back until a day."""

    finding: Finding
    until: date
    reason: str


@dataclass(frozen=True, slots=True)
class FileResult:
    """What was found in one file, in source order."""

    path: str
    findings: tuple[Located, ...]
    snoozed: tuple[Snoozed, ...] = ()


@dataclass(frozen=True, slots=True)
class LintResult:
    """What a run found, files in the order of their paths.

    Attributes:
        unread: why files could not be read, in words.
        baselined: how many findings the baseline held back.
    """

    files: tuple[FileResult, ...]
    unread: tuple[str, ...] = ()
    baselined: int = 0

    @property
    def findings(self) -> list[Finding]:
        """All findings that count."""
        return [located.finding for entry in self.files for located in entry.findings]


def rule_infos() -> list[RuleInfo]:
    """Return what the formats need to know of the checks."""
    return [rule_info(check) for check in CHECKS]


def rule_info(check: RunbookCheck) -> RuleInfo:
    """Return what the formats need to know of one check."""
    summary = check.page.strip().partition("\n")[0]
    page = f"docs/rules/{check.id}-{check.name}.md"
    return RuleInfo(check.id, check.name, summary, check.severity, page)


def files(paths: Iterable[Path], settings: Settings) -> list[Path]:
    """Return the files to read under some paths, sorted; a file named outright is always read.

    Raises:
        InputError: when a path does not exist, or is a file of a kind that is not read.
    """
    found: set[Path] = set()
    for path in paths:
        if path.is_dir():
            found.update(_walk(path, settings))
        elif path.is_file():
            if path.suffix.lower() not in KINDS:
                kinds = ", ".join(sorted(KINDS))
                raise InputError(f"{path}: not a kind of file lint reads ({kinds})", str(path))
            if not _excluded(path, settings):
                found.add(path)
        else:
            raise InputError(f"{path}: no such file or directory", str(path))
    return sorted(found)


def _walk(directory: Path, settings: Settings) -> Iterator[Path]:
    for root, directories, names in os.walk(directory):
        directories[:] = sorted(name for name in directories if name not in _SKIPPED)
        for name in names:
            path = Path(root, name)
            if path.suffix.lower() in KINDS and not _excluded(path, settings):
                yield path


def _excluded(path: Path, settings: Settings) -> bool:
    return any(matches(path.as_posix(), pattern) for pattern in settings.exclude)


def lint_files(paths: Sequence[Path], request: Request) -> LintResult:
    """Read files and return what the checks say of them.

    Raises:
        InputError: when not one of the files could be read.
    """
    texts: list[tuple[str, str]] = []
    unread: list[str] = []
    for path in paths:
        try:
            texts.append((path.as_posix(), read_text(path)))
        except InputError as error:
            unread.append(str(error))
    if paths and not texts:
        raise InputError(f"none of the {len(paths)} files could be read; {unread[0]}")
    recorded = recorded_metrics((text for _, text in texts), request.settings)
    if len(texts) >= _PARALLEL_FROM and (os.cpu_count() or 1) > 1:
        from concurrent.futures import ProcessPoolExecutor  # half the start-up of a small run

        with ProcessPoolExecutor(max_workers=2) as pool:
            size = -(-len(texts) // 8)
            groups = [texts[at : at + size] for at in range(0, len(texts), size)]
            results = [
                entry
                for group in pool.map(
                    _lint_group, groups, [request] * len(groups), [recorded] * len(groups)
                )
                for entry in group
            ]
    else:
        results = _lint_group(texts, request, recorded)
    return LintResult(tuple(results), tuple(unread))


def read_text(path: Path) -> str:
    """Return a file's text as it stands, bad bytes kept as surrogates.

    Raises:
        InputError: when it cannot be read or is too large.
    """
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise InputError(f"{path}: larger than {_MAX_BYTES >> 20} MiB", str(path))
        return path.read_bytes().decode("utf-8", errors="surrogateescape")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}", str(path)) from error


def recorded_metrics(texts: Iterable[str], settings: Settings) -> frozenset[str]:
    """Return names of metrics that recording rules make, and those that the settings allow."""
    found = set(settings.known_metrics)
    for text in texts:
        if "record" in text:
            found.update(match[1] for match in _RECORDED.finditer(text))
    return frozenset(found)


def _lint_group(
    texts: Sequence[tuple[str, str]], request: Request, recorded: frozenset[str]
) -> list[FileResult]:
    return [lint_text(path, text, request, recorded) for path, text in texts]


def lint_text(path: str, text: str, request: Request, recorded: frozenset[str]) -> FileResult:
    """Return what the checks say of one text."""
    document, directives = read(
        path, text, request.settings, recorded, stated_version=request.vllm_version
    )
    disabled = {name.lower() for name in request.settings.for_path(path).disable}
    seen: Counter[str] = Counter()
    findings: list[Located] = []
    snoozed: list[Snoozed] = []
    remarks = sorted(
        _remarks(document, directives, request.today),
        key=lambda pair: (pair[1].start, pair[1].end, pair[0].id),
    )
    for check, remark in dict.fromkeys(remarks):
        if disabled & {check.id.lower(), check.name}:
            continue
        finding = _finding(document, check, remark, seen)
        line = 1 if finding.place is None else finding.place.line
        hold: Suppression | None = held(check, line, directives, request.today)
        if hold is None:
            findings.append(Located(finding, remark.start, remark.end))
        elif hold.hold == "snoozed" and hold.until is not None:
            snoozed.append(Snoozed(finding, hold.until, hold.reason))
    return FileResult(path, tuple(findings), tuple(snoozed))


def _remarks(
    document: Document, directives: Sequence[Directive], today: date
) -> Iterator[tuple[RunbookCheck, Remark]]:
    for check in CHECKS:
        for remark in check.look(document):
            yield check, remark
    names = ["all", *(name for check in CHECKS for name in (check.id, check.name))]
    for directive in directives:
        over = expired(directive, today)
        if over is not None:
            yield EXPIRED, over
        for fault in faults(directive, names):
            yield UNKNOWN, fault


def _finding(
    document: Document, check: RunbookCheck, remark: Remark, seen: Counter[str]
) -> Finding:
    lines = document.lines
    line, column = lines.position(remark.start)
    end_line, end_column = lines.position(max(remark.end, remark.start))
    text = lines.text[remark.start : remark.end]
    basis = "\0".join((check.id, document.path, text, lines.line(line).text.strip()))
    seen[basis] += 1
    digest = hashlib.sha256(f"{basis}\0{seen[basis]}".encode("utf-8", "surrogateescape"))
    severity: Severity = remark.severity or check.severity
    return Finding(
        rule_info(check),
        severity,
        remark.message,
        Place(document.path, line, column, end_line, end_column, text),
        remark.replacement,
        digest.hexdigest()[:16],
    )
