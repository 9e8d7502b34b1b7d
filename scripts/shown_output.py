"""Run the commands that a document shows, and write what they print into it.

    python scripts/shown_output.py README.md            rewrites the document
    python scripts/shown_output.py --check README.md    exits with 1 where it is stale

A block of ```console lines is taken command by command: a line ``$ forensics …`` is run in the
repository's root, and what it prints stands below it. ``…`` on a line of its own means that output
is left out there; what follows is found again by the beginning of its first line.
"""

import os
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
CUT = "…"
WIDTH = "96"


def printed(command: str) -> list[str]:
    """Run one command and give the lines that it prints."""
    words = shlex.split(command)
    if words[0] != "forensics":
        raise SystemExit(f"only forensics is run, not {words[0]!r}")
    script = "from forensics.cli.main import main; main()"
    environment = {**os.environ, "COLUMNS": WIDTH, "NO_COLOR": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", script, *words[1:]],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return [line.rstrip() for line in done.stdout.splitlines()]


def refreshed(text: str) -> str:
    """Give the document with the output of its commands as it is now."""
    lines = text.split("\n")
    result: list[str] = []
    at = 0
    while at < len(lines):
        result.append(lines[at])
        if lines[at].strip() == "```console":
            end = lines.index("```", at)
            result += _block(lines[at + 1 : end])
            at = end
            continue
        at += 1
    return "\n".join(result)


def _block(lines: list[str]) -> list[str]:
    result: list[str] = []
    at = 0
    while at < len(lines):
        if not lines[at].startswith("$ forensics "):
            result.append(lines[at])
            at += 1
            continue
        end = at + 1
        while end < len(lines) and not lines[end].startswith("$ "):
            end += 1
        shown = lines[at + 1 : end]
        now = printed(lines[at][2:])
        result += [lines[at], *(_cut(shown, now) if CUT in shown else now)]
        at = end
    return result


def _cut(shown: list[str], now: list[str]) -> list[str]:
    """Keep as many lines around each cut as were shown, found again by the line they begin with."""
    result: list[str] = []
    parts: list[list[str]] = [[]]
    for line in shown:
        if line == CUT:
            parts.append([])
        else:
            parts[-1].append(line)
    begin = 0
    for number, part in enumerate(parts):
        if number:
            result.append(CUT)
        if not part:
            continue
        like = (at for at in range(begin, len(now)) if now[at].startswith(part[0]))
        found = next(like, begin) if number else begin
        result += now[found : found + len(part)]
        begin = found + len(part)
    return result


def main() -> None:
    """Refresh or check the documents named."""
    words = sys.argv[1:]
    check = "--check" in words
    stale = False
    for name in (word for word in words if word != "--check"):
        path = Path(name)
        text = path.read_text("utf-8")
        new = refreshed(text)
        if new != text:
            stale = True
            if not check:
                path.write_text(new, "utf-8")
    sys.exit(int(check and stale))


if __name__ == "__main__":
    main()
