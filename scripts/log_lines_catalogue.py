"""Make forensics/catalog/log_lines.toml from a list of log templates by vLLM release.

The list has one JSON object per line with the keys kind, since, until, engine, level, template,
example; it was read out of the logging calls of 69 releases. Kept are the text with sample values
in its places and one example without its line prefix, which is what a search pattern is tried on.

Usage: python scripts/log_lines_catalogue.py TEMPLATES.jsonl > forensics/catalog/log_lines.toml
"""

import json
import re
import sys
from pathlib import Path

from toml_text import Value, tables

HEADER = """\
# Lines that vLLM servers print, by release. Written by scripts/log_lines_catalogue.py. `text` is
# the template with sample values in its places; `example` a whole line where it shows more.
# `first`/`last` are releases, both included; engines are V0, V1 or both. Lines of `circulating`
# are found in articles and scripts, but no release prints them.
"""
_SAMPLES = {"d": "7", "f": "57.3", "s": "value"}
_NAMED = {"engine_prefix": "Engine 000", "device": "GPU", "mode": "PreemptionMode.SWAP"}
_PLACE = re.compile(r"\{(\w+)(?::%[-+0-9.]*([a-z]))?\}")


def sampled(template: str) -> str:
    """Put sample values into a template and open its optional parts."""
    text = _PLACE.sub(
        lambda match: _NAMED.get(match[1]) or _SAMPLES.get(match[2] or "s", "value"), template
    ).replace("PreemptionMode.PreemptionMode", "PreemptionMode")
    # Optional segments stand in brackets that begin with a comma, a blank or a word.
    return re.sub(r"\[([, ][^\[\]]*)\]", r"\1", text)


def example_text(example: str) -> str:
    """Cut the process, level, time and file off an example."""
    return re.sub(
        r"^(?:\([^)]*\) )*(?:[A-Z]+ \d\d-\d\d \d\d:\d\d:\d\d \[?[\w./]+:\d+\]? ?)", "", example
    )


def main() -> None:
    """Read the list named on the command line and print the catalogue."""
    lines = Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    rows: dict[tuple[str, str], dict[str, Value | None]] = {}
    circulating: list[dict[str, Value | None]] = []
    for record in records:
        if record["kind"] == "json_log":
            continue
        text = sampled(record["template"]).strip()
        example: str | None = example_text(record["example"]).strip()
        if example is not None and example in text:
            example = None
        if record["kind"] == "blog_only":
            circulating.append({"text": text})
            continue
        row: dict[str, Value | None] = {
            "kind": record["kind"],
            "text": text,
            "example": example,
            "level": record["level"],
            "engine": record["engine"],
            "source": record["source"][0] if record["source"] else None,
            "first": record["since"],
            "last": record["until"],
        }
        before = rows.get((text, record["engine"]))
        if before is None:
            rows[text, record["engine"]] = row
        else:  # the same text in neighbouring ranges
            before["first"] = min(str(before["first"]), record["since"], key=numbers)
            before["last"] = max(str(before["last"]), record["until"], key=numbers)
    sys.stdout.write(
        f"{HEADER}\n{tables('circulating', circulating)}\n{tables('line', rows.values())}"
    )


def numbers(release: str) -> tuple[int, ...]:
    """Order releases by number."""
    return tuple(map(int, release.split(".")))


if __name__ == "__main__":
    main()
