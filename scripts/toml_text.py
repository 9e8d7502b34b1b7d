"""Write plain values as TOML text in a fixed order: regenerated files differ only in data."""

import json
from collections.abc import Iterable, Mapping

Value = str | int | float | bool | list["Value"] | dict[str, "Value"]


def inline(value: Value) -> str:
    """Return a value in TOML's inline notation."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list):
        return "[" + ", ".join(inline(item) for item in value) + "]"
    return "{ " + ", ".join(f"{key} = {inline(item)}" for key, item in value.items()) + " }"


def tables(name: str, rows: Iterable[Mapping[str, Value | None]]) -> str:
    """Return rows as an array of tables; a None is an absent key."""
    parts = []
    for row in rows:
        lines = [f"[[{name}]]"]
        lines += [f"{key} = {inline(value)}" for key, value in row.items() if value is not None]
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)
