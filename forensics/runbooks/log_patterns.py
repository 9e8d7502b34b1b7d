"""Patterns people look for in server logs: `grep` and its kin in pipelines, and LogQL filters."""

import re
from collections.abc import Iterator, Sequence

from forensics.runbooks.interface import LogPattern, PatternFlavour
from forensics.runbooks.shell import Command, Word
from forensics.runbooks.text import Mapped

_GREPS: dict[str, PatternFlavour] = {
    "grep": "basic",
    "zgrep": "basic",
    "egrep": "extended",
    "zegrep": "extended",
    "fgrep": "fixed",
    "rg": "perl",
    "ag": "perl",
    "ack": "perl",
}
_WITH_VALUE = frozenset(
    {
        "-A",
        "-B",
        "-C",
        "-m",
        "-e",
        "-f",
        "--color",
        "--colour",
        "--include",
        "--exclude",
        "--exclude-dir",
        "-g",
        "-t",
        "--max-count",
        "--context",
        "--after-context",
        "--before-context",
        "--regexp",
        "--file",
        "-d",
        "-D",
        "--label",
    }
)
_READERS = frozenset({"cat", "tail", "head", "zcat", "less", "bzcat", "xzcat", "zstdcat"})
_LOG_NAME = re.compile(r"(?:^|[/._-])logs?(?:$|[/._*-])|\.log|\.out$|nohup", re.IGNORECASE)
_METRIC_WORD = re.compile(r"(?:^\^?|\|\s*)(vllm:[a-z_0-9]+)(?=\\?\||$|\{|\\b| )")
_STREAM_SELECTOR = re.compile(r"\{[^{}=]*=[^{}]*\}\s*(?=\|[=~]|!=|!~)")
_FILTER = re.compile(
    r"(\|=|\|~|!=|!~)\s*(\"(?:\\.|[^\"\\])*\"|`[^`]*`)|\bor\s+(\"(?:\\.|[^\"\\])*\"|`[^`]*`)"
)


def grep_patterns(found: Sequence[Command]) -> Iterator[LogPattern]:
    """Yield what is looked for in logs among shell commands."""
    for command in found:
        if not command.words:
            continue
        name = command.words[0].text.text.rsplit("/", 1)[-1]
        if name in _GREPS:
            yield from _grep(command, _GREPS[name])
        elif name == "awk" and reads_logs(command):
            yield from _awk(command)


def scraped_names(found: Sequence[Command]) -> Iterator[Mapped]:
    """Yield the metrics looked for in the answer of a `/metrics` endpoint: `curl … | grep NAME`."""
    for command in found:
        name = command.words[0].text.text.rsplit("/", 1)[-1] if command.words else ""
        if name not in _GREPS or not _reads_metrics(command):
            continue
        for word in command.words[1:]:
            if not word.open and not word.text.text.startswith("-"):
                for match in _METRIC_WORD.finditer(word.text.text):
                    yield word.text.cut(*match.span(1))
                break


def _reads_metrics(command: Command) -> bool:
    feeder = command.fed_by
    while feeder is not None:
        if any(re.search(r"/metrics\b", word.text.text) for word in feeder.words):
            return True
        feeder = feeder.fed_by
    return False


def logql_patterns(source: Mapped) -> Iterator[LogPattern]:
    """Yield the positive line filters of a LogQL query; nothing when the text is none."""
    stream = _STREAM_SELECTOR.search(source.text)
    if stream is None:
        return
    positive = True
    for match in _FILTER.finditer(source.text, stream.end()):
        if match[1]:
            positive = match[1] in ("|=", "|~")
        if not positive:
            continue
        group = 2 if match[1] else 3
        start, end = match.span(group)
        flavour: PatternFlavour = "perl" if match[1] == "|~" else "fixed"
        pattern = source.cut(start + 1, end - 1)
        if not re.search(r"\$|\{\{", pattern.text) or flavour == "perl":
            yield LogPattern(pattern, flavour, pattern.text.startswith("(?i)"))


def is_logql(text: str) -> bool:
    """Tell whether a query selects log streams rather than series."""
    return _STREAM_SELECTOR.search(text) is not None


def reads_logs(command: Command) -> bool:
    """Tell whether a command reads a server's log, from a file or through its pipeline."""
    if any(_LOG_NAME.search(word.text.text) for word in command.words[1:] if not word.quoted):
        return True
    feeder = command.fed_by
    while feeder is not None:
        words = [word.text.text for word in feeder.words]
        if words and words[0].rsplit("/", 1)[-1] in (
            "kubectl",
            "docker",
            "oc",
            "podman",
            "nerdctl",
        ):
            return "logs" in words
        if words and words[0] in ("journalctl", "stern", "kubetail", "logcli", "docker-compose"):
            return words[0] != "docker-compose" or "logs" in words
        if words and words[0] in _READERS and any(_LOG_NAME.search(word) for word in words[1:]):
            return True
        feeder = feeder.fed_by
    return False


def _grep(command: Command, flavour: PatternFlavour) -> Iterator[LogPattern]:
    ignore_case = False
    patterns: list[Word] = []
    positionals: list[Word] = []
    words = command.words[1:]
    index = 0
    while index < len(words):
        word = words[index]
        text = word.text.text
        index += 1
        if text.startswith("-") and len(text) > 1 and not word.quoted:
            name, _, inline = text.partition("=")
            if name in ("-e", "--regexp") and index < len(words) and not inline:
                patterns.append(words[index])
            if name in _WITH_VALUE and not inline:
                index += 1
            if text.startswith("--"):
                ignore_case |= name == "--ignore-case"
                flavour = {
                    "--extended-regexp": "extended",
                    "--fixed-strings": "fixed",
                    "--perl-regexp": "perl",
                }.get(name, flavour)  # type: ignore[assignment]
                if name in ("--invert-match",):
                    return
                continue
            letters = re.match(r"-([a-zA-Z]*)", text)
            cluster = letters[1] if letters else ""
            if "v" in cluster:
                return
            ignore_case |= "i" in cluster
            for letter, kind in (("E", "extended"), ("F", "fixed"), ("P", "perl")):
                if letter in cluster:
                    flavour = kind  # type: ignore[assignment]
            if len(cluster) > 1 and cluster.endswith("e") and index < len(words):
                patterns.append(words[index])
                index += 1
        else:
            positionals.append(word)
    if not patterns and positionals:
        patterns = positionals[:1]
    if not reads_logs(command):
        return
    for word in patterns:
        if not word.open and word.text.text:
            yield LogPattern(word.text, flavour, ignore_case)


def _awk(command: Command) -> Iterator[LogPattern]:
    for word in command.words[1:]:
        for match in re.finditer(r"(?<![\w/])/((?:\\.|[^/\\])+)/", word.text.text):
            yield LogPattern(word.text.cut(*match.span(1)), "extended", False)
        return
