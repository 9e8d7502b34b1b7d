"""A file's text into a Document: kind, front matter, directives, then its parts."""

import re
from dataclasses import replace
from pathlib import PurePath

from forensics.errors import ConfigError
from forensics.runbooks.ceiling_blocks import blocks
from forensics.runbooks.directives import SETTINGS, Directive, directives
from forensics.runbooks.documents import markdown, structured, yaml_nodes
from forensics.runbooks.documents.nodes import Table
from forensics.runbooks.documents.parts import Parts
from forensics.runbooks.interface import Document, DocumentKind, Stated, Unread
from forensics.runbooks.settings import Settings
from forensics.runbooks.target import target
from forensics.runbooks.text import Lines, Mapped

KINDS: dict[str, DocumentKind] = {
    ".md": "markdown",
    ".markdown": "markdown",
    ".mdx": "markdown",
    ".mkd": "markdown",
    ".sh": "shell",
    ".bash": "shell",
    ".zsh": "shell",
    ".yaml": "yaml",
    ".yml": "yaml",
    ".rules": "yaml",
    ".json": "json",
}
"""What is read, by the end of a file's name."""
_FRONT_NAMES = ("vllm-version", "gpu", "model", "context")
_RELEVANT = re.compile(
    r"vllm|forensics:|kv[ _-]?cache|kv 캐시|preempt|swap[ _-](?:space|out)"
    r"|--(?:gpu|max|enable|disable|swap|kv|num|watermark)",
    re.IGNORECASE,
)
"""What a document speaks of when there can be anything to find in it; the rest is skipped fast."""
_MANIFEST = re.compile(r"^(?:apiVersion|kind|groups|services):", re.MULTILINE)
_FRONT_MATTER = re.compile(
    r"\ufeff?---[ \t]*\r?\n(.*?\n)(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.DOTALL
)


def read(
    path: str,
    text: str,
    settings: Settings,
    recorded: frozenset[str],
    *,
    stated_version: str | None,
) -> tuple[Document, list[Directive]]:
    """Take a file apart.

    Args:
        path: as named by the operator, with forward slashes.
        text: its content.
        settings: of the run.
        recorded: metric names that recording rules of this run make.
        stated_version: from the command line; wins over everything the file says.
    """
    lines = Lines(text)
    kind = KINDS[PurePath(path).suffix.lower()]
    settings = settings.for_path(path)
    if _RELEVANT.search(text) is None:
        return _document(path, kind, lines, settings, recorded, Parts()), []
    parts = Parts()
    found = directives(lines, markdown=kind == "markdown")
    front, first_line = _front_matter(lines) if kind == "markdown" else ((), 1)
    for key, value, start, end in (*front, *_settings_of(found)):
        try:
            settings = settings.with_values(((key, value),), path)
        except ConfigError as error:
            parts.unread.append(Unread(start, end, str(error).removeprefix(f"{path}: ")))
    if stated_version is not None:
        settings = replace(settings, vllm_version=stated_version)
    whole = Mapped.plain(text, 0)
    if kind == "markdown":
        markdown.add_markdown(lines, first_line, parts)
    elif kind == "shell":
        parts.add_shell(whole)
    elif kind == "yaml":
        structured.add_yaml(whole, parts)
    else:
        structured.add_json(whole, parts)
    for body in parts.heredocs:  # manifests that a script applies
        if _MANIFEST.search(body.text):
            structured.add_yaml(body, parts)
    if kind == "markdown":
        parts.blocks.extend(blocks(lines))
    written = [block.body.span for block in parts.blocks if block.body is not None]
    if written:  # what the tool wrote is not what the author says
        parts.prose = [
            line
            for line in parts.prose
            if not any(start <= line.text.offsets[0] < end for start, end in written)
        ]
    return _document(path, kind, lines, settings, recorded, parts), found


def _document(
    path: str,
    kind: DocumentKind,
    lines: Lines,
    settings: Settings,
    recorded: frozenset[str],
    parts: Parts,
) -> Document:
    return Document(
        path=path,
        kind=kind,
        lines=lines,
        target=target(settings.vllm_version, settings.engine),
        stated=Stated(settings.gpu or parts.gpu, settings.model, settings.context, settings.tp),
        scrape_interval_s=parts.scrape_interval_s or settings.scrape_interval_s,
        recorded=recorded,
        queries=tuple(parts.queries),
        commands=tuple(parts.commands),
        patterns=tuple(parts.patterns),
        blocks=tuple(parts.blocks),
        prose=tuple(parts.prose),
        broken=tuple(parts.broken),
        unread=tuple(parts.unread),
    )


def _settings_of(found: list[Directive]) -> list[tuple[str, str, int, int]]:
    return [
        (key, value, *directive.place.span)
        for directive in found
        for key, value in directive.settings
    ]


def _front_matter(lines: Lines) -> tuple[tuple[tuple[str, str, int, int], ...], int]:
    """Return what the front matter sets, and the first line (from 1) below it.

    `vllm-version`, `gpu`, `model` and `context` may stand by themselves, the rest of the settings
    under `forensics:`, since other programs use such common words too.
    """
    match = _FRONT_MATTER.match(lines.text)
    if match is None:
        return (), 1
    line, _ = lines.position(match.end())
    try:
        documents = yaml_nodes.load(Mapped.plain(match[1], match.start(1)))
    except yaml_nodes.YamlFaultError:
        return (), line
    found: list[tuple[str, str, int, int]] = []
    for node in documents[:1]:
        if isinstance(node, Table):
            own = node.get("forensics")
            inner = own if isinstance(own, Table) else Table(())
            for table, names in ((node, _FRONT_NAMES), (inner, SETTINGS)):
                for key, _ in table.pairs:
                    name = key.text.text.replace("_", "-")
                    value = table.text(key.text.text)
                    if value is not None and name in names and value.text:
                        found.append((name, value.text, *value.span))
    return tuple(found), line
