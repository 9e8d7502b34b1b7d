"""What a runbook check is, what it looks at, and what it remarks."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from forensics.ci_formats.interface import Severity
from forensics.errors import ConfigError
from forensics.runbooks.promql.errors import SyntaxFault
from forensics.runbooks.promql.nodes import Node
from forensics.runbooks.promql.placeholders import Filled
from forensics.runbooks.serve import ServeCommand
from forensics.runbooks.target import Target, target
from forensics.runbooks.text import Lines, Mapped

DocumentKind = Literal["markdown", "shell", "yaml", "json"]
QueryRole = Literal["alert", "record", "panel", "text", "mention"]
"""Where a query stands: in an alert, a recording rule, a dashboard, a text; a mention is a bare
metric name in running text."""
PatternFlavour = Literal["basic", "extended", "fixed", "perl"]


@dataclass(frozen=True, slots=True)
class Query:
    """A PromQL expression.

    Attributes:
        source: as it stands in the document.
        filled: its text with variables replaced by something of the same length.
        tree: None when it does not parse or its nodes could not be placed.
        fault: why it does not parse; None when it does.
        role: where it stands.
        unit: of the panel that shows it, in Grafana's words; None elsewhere.
    """

    source: Mapped
    filled: Filled
    tree: Node | None
    fault: SyntaxFault | None
    role: QueryRole
    unit: str | None = None


@dataclass(frozen=True, slots=True)
class LogPattern:
    """A pattern somebody looks for in a server's log.

    Attributes:
        pattern: as the tool gets it, without quotes.
        flavour: how the tool reads it.
        ignore_case: whether case counts.
    """

    pattern: Mapped
    flavour: PatternFlavour
    ignore_case: bool


@dataclass(frozen=True, slots=True)
class CeilingBlock:
    """A table the tool keeps current between two marks.

    Attributes:
        opening: the mark that opens it; `arguments` what it says, in order.
        body: what stands between the marks; None when nothing closes it.
        indent: what stands before the opening mark on its line.
    """

    opening: Mapped
    arguments: tuple[tuple[str, Mapped], ...]
    body: Mapped | None
    indent: str


@dataclass(frozen=True, slots=True)
class Prose:
    """A paragraph, table row or note of running text, under its headings.

    Attributes:
        text: its lines.
        topic: the headings above it and its own text, in lower case.
    """

    text: Mapped
    topic: str


@dataclass(frozen=True, slots=True)
class Stated:
    """What a document says of the deployment it is for; None where it does not.

    Attributes:
        gpu / model: names. `context`: tokens a request holds. `tp`: tensor-parallel size.
    """

    gpu: str | None = None
    model: str | None = None
    context: int | None = None
    tp: int | None = None


@dataclass(frozen=True, slots=True)
class Unread:
    """A part of a document that could not be read."""

    start: int
    end: int
    reason: str


@dataclass(frozen=True, slots=True)
class Document:
    """One file, taken apart.

    Attributes:
        path: as named by the operator, with forward slashes.
        lines: its text and lines.
        target: the releases it is for.
        stated: the deployment it is for.
        scrape_interval_s: how often the server is scraped, in seconds.
        recorded: metric names that recording rules of this run make, and those the settings allow.
        broken: what breaks a command over several lines: blanks behind a backslash, a flag that
            begins a line of its own.
        unread: what could not be read.
    """

    path: str
    kind: DocumentKind
    lines: Lines
    target: Target
    stated: Stated
    scrape_interval_s: float
    recorded: frozenset[str]
    queries: tuple[Query, ...] = ()
    commands: tuple[ServeCommand, ...] = ()
    patterns: tuple[LogPattern, ...] = ()
    blocks: tuple[CeilingBlock, ...] = ()
    prose: tuple[Prose, ...] = ()
    broken: tuple[Mapped, ...] = ()
    unread: tuple[Unread, ...] = ()

    def target_of(self, command: ServeCommand) -> Target:
        """Return the releases a command is for: its image's, else the document's."""
        if command.version is None and command.engine is None:
            return self.target
        stated = self.target.stated if command.version is None else command.version
        try:
            return target(stated, command.engine or self.target.forced)
        except ConfigError:  # a tag older than anything catalogued, or of a fork
            return self.target


@dataclass(frozen=True, slots=True)
class Remark:
    """What a check says about some characters of a document.

    Attributes:
        start / end: offsets in the file.
        message: what is wrong and what to do, in one or two sentences.
        replacement: what to write there, only when that is certain.
        severity: None for the check's own.
    """

    start: int
    end: int
    message: str
    replacement: str | None = None
    severity: Severity | None = None


@dataclass(frozen=True, slots=True)
class RunbookCheck:
    """One check, as the registry lists it; its module's docstring is its page in the docs.

    Attributes:
        id / name: public and stable.
        severity: of its remarks unless they say otherwise.
        look: yields the remarks on a document; pure.
        page: the module's docstring.
    """

    id: str
    name: str
    severity: Severity
    look: Callable[[Document], Iterator[Remark]]
    page: str
