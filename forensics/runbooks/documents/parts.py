"""Collects what is found in a document, whatever kind of file it stands in."""

import re
from dataclasses import dataclass, field
from functools import lru_cache
from urllib.parse import unquote

from forensics.catalog.flags_catalog import flag
from forensics.runbooks.interface import (
    CeilingBlock,
    LogPattern,
    Prose,
    Query,
    QueryRole,
    Unread,
)
from forensics.runbooks.log_patterns import (
    grep_patterns,
    is_logql,
    logql_patterns,
    scraped_names,
)
from forensics.runbooks.promql import errors
from forensics.runbooks.promql.nodes import Node, Selector
from forensics.runbooks.promql.placeholders import Filled, fill
from forensics.runbooks.promql.tree import PlacesLostError, parse
from forensics.runbooks.serve import ServeCommand, serve_commands
from forensics.runbooks.shell import Command, script, unprompted
from forensics.runbooks.text import Mapped

METRIC = re.compile(r"\bvllm[:_][a-zA-Z_][\w:]*")
"""Something that looks like a metric of the server; `vllm_` where a pipeline rewrote the colon."""
_QUERY_WORD = re.compile(r"(?:query|match\[\])=(.+)", re.DOTALL)
_BARE_METRIC = re.compile(r"vllm:[a-zA-Z_][\w:]*\*?")


@dataclass(slots=True)
class Parts:
    """The pieces of one document, in the order found."""

    queries: list[Query] = field(default_factory=list)
    commands: list[ServeCommand] = field(default_factory=list)
    patterns: list[LogPattern] = field(default_factory=list)
    blocks: list[CeilingBlock] = field(default_factory=list)
    prose: list[Prose] = field(default_factory=list)
    unread: list[Unread] = field(default_factory=list)
    heredocs: list[Mapped] = field(default_factory=list)
    broken: list[Mapped] = field(default_factory=list)
    scrape_interval_s: float | None = None
    gpu: str | None = None

    def add_query(self, source: Mapped, role: QueryRole, unit: str | None = None) -> None:
        """Take an expression; a LogQL one gives its line filters instead."""
        if is_logql(source.text):
            self.patterns.extend(logql_patterns(source))
            return
        if METRIC.search(source.text):
            self.queries.append(query(source, role, unit))

    def add_shell(self, source: Mapped) -> None:
        """Take a script or a terminal transcript."""
        for piece in unprompted(source):
            taken = script(piece)
            self.commands.extend(serve_commands(taken.commands))
            self.patterns.extend(grep_patterns(taken.commands))
            self.heredocs.extend(taken.heredocs)
            self.broken.extend(taken.broken)
            for name in scraped_names(taken.commands):
                self.add_query(name, "text")
            for command in taken.commands:
                self._add_queries_of(command)
                first = command.words[0].text if command.words else None
                if first is not None and first.text.startswith("--") and flag(first.text):
                    self.broken.append(first)

    def _add_queries_of(self, command: Command) -> None:
        words = [word.text for word in command.words]
        if not words:
            return
        name = words[0].text.rsplit("/", 1)[-1]
        if name in ("curl", "http", "https", "wget"):
            for word in words[1:]:
                match = _QUERY_WORD.search(word.text)
                if match is None:
                    continue
                value = word.cut(*match.span(1))
                cut = value.text.find("&") if "://" in word.text else -1
                value = value if cut < 0 else value.cut(0, cut)
                if "%" in value.text and unquote(value.text) != value.text:
                    continue  # percent-encoded: what stands there is not the expression
                self.add_query(value, "text")
        elif name == "promtool" and "query" in [word.text for word in words[1:3]]:
            for word in words[3:]:
                self.add_query(word, "text")
        elif name == "logcli":
            for word in words[1:]:
                self.patterns.extend(logql_patterns(word))


def query(source: Mapped, role: QueryRole, unit: str | None = None) -> Query:
    """Read one expression."""
    text = source.text
    end = len(text.rstrip())
    source = source.cut(len(text) - len(text.lstrip()), end) if end else source
    filled, tree, fault = _read(source.text)
    bare = isinstance(tree, Selector) and _BARE_METRIC.fullmatch(source.text) is not None
    role = "mention" if bare and role == "text" else role
    return Query(source, filled, tree, fault, role, unit)


@lru_cache(maxsize=4096)
def _read(text: str) -> tuple[Filled, Node | None, errors.SyntaxFault | None]:
    filled = fill(text)
    try:
        return filled, parse(filled.text), None
    except PlacesLostError:
        return filled, None, None
    except ValueError as error:
        return filled, None, errors.locate(filled.text, str(error))


def parses(text: str) -> bool:
    """Tell whether a text is an expression as it stands."""
    return _read(text.strip())[2] is None
