"""YAML and JSON documents: rule files, PrometheusRules, dashboards, manifests, compose files."""

import re
from collections.abc import Iterator, Mapping

from forensics.catalog.versions import Generation
from forensics.runbooks.documents import json_nodes, yaml_nodes
from forensics.runbooks.documents.nodes import Leaf, Node, Rows, Table, tables
from forensics.runbooks.documents.parts import Parts
from forensics.runbooks.interface import Prose, QueryRole, Unread
from forensics.runbooks.promql.placeholders import fill
from forensics.runbooks.serve import from_container
from forensics.runbooks.shell import Word
from forensics.runbooks.shell import commands as shell_commands
from forensics.runbooks.text import Mapped

_QUERY_KEYS = frozenset({"expr", "query", "seriesQuery"})
_LABEL_VALUES = re.compile(r"\s*(?:label_values|query_result|metrics)\s*\(")
_DURATION = re.compile(r"(\d+)(ms|s|m|h)")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_SHELL_SIGNS = re.compile(r"\bvllm\s+serve\b|vllm\.entrypoints|\b(?:kubectl|docker)\b.*\blogs\b")
_GPU_KEYS = frozenset({"nvidia.com/gpu.product", "cloud.google.com/gke-accelerator", "gpu"})


def add_yaml(source: Mapped, parts: Parts) -> None:
    """Take a YAML text apart; a template that is YAML only after rendering is left alone."""
    try:
        documents = yaml_nodes.load(source)
    except yaml_nodes.YamlFaultError as fault:
        if "{{" not in source.text:
            parts.unread.append(_unread(source, fault.offset, f"this is not YAML: {fault}"))
        return
    for document in documents:
        _add(document, parts)


def add_json(source: Mapped, parts: Parts) -> None:
    """Take a JSON text apart."""
    try:
        document = json_nodes.load(source)
    except json_nodes.JsonFaultError as fault:
        parts.unread.append(_unread(source, fault.offset, f"this is not JSON: {fault}"))
        return
    _add(document, parts)


def _unread(source: Mapped, offset: int, reason: str) -> Unread:
    at = min(offset, max(len(source.text) - 1, 0))
    start, end = source.place(at, min(at + 1, len(source.text)))
    return Unread(start, end, reason)


def _add(document: Node, parts: Parts) -> None:
    units = dict(_units(document))
    for table in tables(document):
        if _is_container(table):
            _add_container(table, parts)
        for key, value in table.pairs:
            name = key.text.text
            if isinstance(value, Leaf):
                _add_leaf(name, value.text, table, units, parts)
            elif isinstance(value, Rows) and not _is_container(table):
                for item in value.items:
                    if isinstance(item, Leaf) and _SHELL_SIGNS.search(item.text.text):
                        parts.add_shell(item.text)
            elif name == "annotations" and isinstance(value, Table) and table.get("alert"):
                topic = table.text("alert")
                for _, note in value.pairs:
                    if isinstance(note, Leaf):
                        _add_note(note.text, "" if topic is None else topic.text, parts)


def _add_leaf(
    name: str, value: Mapped, table: Table, units: Mapping[int, str], parts: Parts
) -> None:
    if name in _QUERY_KEYS:
        _add_query(value, _role(name, table), units.get(value.offsets[0]), parts)
    elif name in ("scrape_interval", "interval") and (
        name == "scrape_interval" or table.get("port") or table.get("targetPort")
    ):
        match = _DURATION.fullmatch(value.text)
        if match:
            parts.scrape_interval_s = int(match[1]) * _UNITS[match[2]]
    elif name in _GPU_KEYS and "/" in name:
        parts.gpu = value.text
    elif value.text.lstrip().startswith("{") and '"panels"' in value.text:
        add_json(value, parts)
    elif name not in ("command", "args") and _SHELL_SIGNS.search(value.text):
        parts.add_shell(value)


def _units(document: Node) -> Iterator[tuple[int, str]]:
    """Yield where the expressions of panels begin, with the unit the panel shows them in."""
    for panel in tables(document):
        targets = panel.get("targets")
        unit = _unit(panel)
        if not isinstance(targets, Rows) or unit is None:
            continue
        for item in targets.items:
            expression = item.text("expr") if isinstance(item, Table) else None
            if expression is not None:
                yield expression.offsets[0], unit


def _unit(panel: Table) -> str | None:
    """The unit of a panel: `fieldConfig.defaults.unit`, in older ones that of the left axis."""
    node: Node | None = panel.get("fieldConfig")
    node = node.get("defaults") if isinstance(node, Table) else None
    unit = node.text("unit") if isinstance(node, Table) else None
    axes = panel.get("yaxes")
    if unit is None and isinstance(axes, Rows) and axes.items:
        left = axes.items[0]
        unit = left.text("format") if isinstance(left, Table) else None
    return None if unit is None else unit.text


def _role(name: str, table: Table) -> QueryRole:
    if table.get("alert"):
        return "alert"
    if table.get("record"):
        return "record"
    return "panel" if name == "expr" else "text"


def _add_query(value: Mapped, role: QueryRole, unit: str | None, parts: Parts) -> None:
    call = _LABEL_VALUES.match(value.text)
    if call is None:
        parts.add_query(value, role, unit)
        return
    # Grafana's label_values(selector, label) is no PromQL, its first argument is.
    inner = value.text[call.end() :].rstrip().removesuffix(")")
    label = re.search(r",\s*\w+\s*$", inner)
    end = call.end() + (label.start() if label else len(inner))
    argument = value.cut(call.end(), end)
    if argument.text.strip() and not fill(argument.text).touches(0, 1):
        parts.add_query(argument, "text")


def _add_note(note: Mapped, topic: str, parts: Parts) -> None:
    text = note.text.lower()
    for line in note.lines():
        parts.prose.append(Prose(line, f"{topic.lower()}\n{text}"))


def _is_container(table: Table) -> bool:
    image = table.text("image")
    return (
        image is not None
        and "vllm" in image.text.lower()
        and (table.get("args") is not None or table.get("command") is not None)
    )


def _add_container(table: Table, parts: Parts) -> None:
    image = table.text("image")
    if image is None:
        return
    words = [*_words(table.get("command")), *_words(table.get("args"))]
    parts.commands.extend(from_container(words, image.text, _engine(table), image))


def _words(node: Node | None) -> Iterator[Word]:
    """The words of `command` or `args`: a list, or one string as compose allows."""
    if isinstance(node, Leaf):
        for command in shell_commands(node.text):
            yield from command.words
    elif isinstance(node, Rows):
        for item in node.items:
            if isinstance(item, Leaf):
                text = item.text
                is_open = "$(" in text.text or "${" in text.text or "{{" in text.text
                yield Word(text, quoted=False, open=is_open)


def _engine(table: Table) -> Generation | None:
    environment = table.get("env") or table.get("environment")
    value: str | None = None
    if isinstance(environment, Table):
        found = environment.text("VLLM_USE_V1")
        value = None if found is None else found.text
    elif isinstance(environment, Rows):
        for item in environment.items:
            if isinstance(item, Leaf) and item.text.text.startswith("VLLM_USE_V1="):
                value = item.text.text.split("=", 1)[1]
            elif isinstance(item, Table):
                name, given = item.text("name"), item.text("value")
                if name is not None and given is not None and name.text == "VLLM_USE_V1":
                    value = given.text
    return None if value not in ("0", "1") else ("V1" if value == "1" else "V0")
