"""Shell text as pipelines of commands of words, each character with its place.

Enough of the shell for runbooks: quotes, continued lines, comments, pipes, redirections, here
documents, command substitution. What it cannot know (a variable's value) is marked, not guessed.
"""

import re
from dataclasses import dataclass

from forensics.runbooks.text import Mapped

_VARIABLE = re.compile(r"\$[A-Za-z_{(]|`|\{\{|<[A-Za-z][\w -]*>|\.\.\.|…")
_HEREDOC = re.compile(r"<<-?\s*([\"']?)([A-Za-z_]\w*)\1")
_REDIRECT = re.compile(r"\d*(?:>>|>\||>&|<&|&>>|&>|<>|>|<)(?:\d+(?=\s|$)|-(?=\s|$))?")
_PROMPT = re.compile(
    r"\s*(?:\([\w.-]+\) ?)?(?:\[?[\w.-]+@[\w.-]+[^$#\n]{0,60}[$#]|[$%❯]|PS [^>\n]*>)\s+(?=\S)"
)
_DEEPEST = 4
"""Substitutions inside substitutions that are still read."""
_CONTINUATION = re.compile(r"\\([ \t]*)\r?\n")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")


@dataclass(frozen=True, slots=True)
class Word:
    """One word with its quotes removed.

    Attributes:
        text: its characters and their places.
        quoted: any of it stood in quotes.
        open: it holds a variable, a substitution or a placeholder, so its value is not known.
    """

    text: Mapped
    quoted: bool
    open: bool


@dataclass(frozen=True, slots=True)
class Command:
    """A simple command.

    Attributes:
        assignments: words before it such as ``VLLM_USE_V1=0``.
        words: the command and its arguments.
        fed_by: the command whose output it reads; None at the head of a pipeline.
    """

    assignments: tuple[Word, ...]
    words: tuple[Word, ...]
    fed_by: "Command | None"


@dataclass(frozen=True, slots=True)
class Script:
    """A shell text, taken apart.

    Attributes:
        commands: the simple commands in source order, those of substitutions last.
        heredocs: the bodies of here documents.
        broken: blanks behind a backslash at the end of a line, which undo the continuation.
    """

    commands: tuple[Command, ...]
    heredocs: tuple[Mapped, ...]
    broken: tuple[Mapped, ...]


def script(source: Mapped, depth: int = 0) -> Script:
    """Take a shell text apart; `depth` counts the substitutions it stands in."""
    reader = _Reader(source, depth)
    reader.read()
    return Script(tuple(reader.found), tuple(reader.bodies), tuple(reader.broken))


def commands(source: Mapped) -> list[Command]:
    """Return the simple commands of a shell text in source order, substitutions last."""
    return list(script(source).commands)


def unprompted(source: Mapped) -> list[Mapped]:
    """Cut a terminal transcript into commands: lines after a prompt, with their continuations.

    A text without prompts is one script.
    """
    lines = list(source.lines())
    prompts = [_PROMPT.match(line.text) for line in lines]
    if not any(prompts):
        return [source]
    pieces = []
    index = 0
    start = 0
    while index < len(lines):
        match = prompts[index]
        end = start + len(lines[index].text)
        if match:
            first = start + match.end()
            while lines[index].text.rstrip().endswith("\\") and index + 1 < len(lines):
                index += 1
                end += 1 + len(lines[index].text)
            pieces.append(source.cut(first, end))
        start = end + 1
        index += 1
    return pieces


class _Reader:
    def __init__(self, source: Mapped, depth: int) -> None:
        self.source = source
        self.depth = depth
        self.text = source.text
        self.at = 0
        self.found: list[Command] = []
        self.inner: list[Mapped] = []
        self.words: list[Word] = []
        self.previous: Command | None = None
        self.piped = False
        self.heredocs: list[str] = []
        self.bodies: list[Mapped] = []
        self.broken: list[Mapped] = []

    def read(self) -> None:
        text = self.text
        while self.at < len(text):
            char = text[self.at]
            if char == "\n":
                self.finish(piped=False)
                self.at += 1
                self.skip_heredocs()
            elif char in " \t\r":
                self.at += 1
            elif char == "\\" and (match := _CONTINUATION.match(text, self.at)):
                if match[1]:
                    self.broken.append(self.source.cut(*match.span(1)))
                self.at = match.end()
            elif char == "#":
                end = text.find("\n", self.at)
                self.at = len(text) if end < 0 else end
            elif text.startswith(("&&", "||", ";;"), self.at):
                self.finish(piped=False)
                self.at += 2
            elif char == "|":
                self.finish(piped=True)
                self.at += 2 if text.startswith("|&", self.at) else 1
                while self.at < len(text) and text[self.at] in " \t\r\n":  # a pipe goes on below
                    self.at += 1
            elif char == "<" and (match := _HEREDOC.match(text, self.at)):
                self.heredocs.append(match[2])
                self.at = match.end()
            elif (match := _REDIRECT.match(text, self.at)) and not re.match(
                r"<[A-Za-z][\w -]*>", text[self.at :]
            ):
                self.at = match.end()
                if not re.search(r"[\d-]$", match.group()):
                    self.skip_target()
            elif char in ";&()":
                self.finish(piped=False)
                self.at += 1
            else:
                self.words.append(self.word())
        self.finish(piped=False)
        if self.depth < _DEEPEST:
            for inner in self.inner:
                self.found.extend(script(inner, self.depth + 1).commands)

    def skip_target(self) -> None:
        while self.at < len(self.text) and self.text[self.at] in " \t":
            self.at += 1
        if self.at < len(self.text) and self.text[self.at] not in "\n;&|":
            self.word()

    def skip_heredocs(self) -> None:
        for mark in self.heredocs:
            end = re.compile(rf"^[ \t]*{mark}[ \t\r]*$", re.MULTILINE).search(self.text, self.at)
            start, stop = self.at, len(self.text) if end is None else end.start()
            self.bodies.append(self.source.cut(start, stop))
            self.at = len(self.text) if end is None else end.end()
        self.heredocs = []

    def finish(self, *, piped: bool) -> None:
        words = self.words
        self.words = []
        if words and words[0].text.text in ("{", "}", "do", "then", "else", "if", "while", "!"):
            words = words[1:]
        head = 0
        while head < len(words) and _ASSIGNMENT.match(words[head].text.text):
            head += 1
        if words:
            command = Command(
                tuple(words[:head]), tuple(words[head:]), self.previous if self.piped else None
            )
            self.found.append(command)
            self.previous = command
        self.piped = piped and bool(words)

    def word(self) -> Word:
        """Read one word; quotes fall away, a continued line inside it too."""
        text, start = self.text, self.at
        kept: list[int] = []
        quoted = False
        quote = ""
        while self.at < len(text):
            char = text[self.at]
            if quote:
                if char == quote:
                    quote = ""
                elif char == "\\" and quote == '"' and text[self.at + 1 : self.at + 2] in '"\\$`\n':
                    self.at += 1
                    if self.at < len(text) and text[self.at] != "\n":
                        kept.append(self.at)
                else:
                    if quote == '"' and text.startswith("$(", self.at):
                        self.note_substitution()
                    kept.append(self.at)
            elif char in "\"'":
                quote, quoted = char, True
            elif char == "\\":
                self.at += 1
                if self.at < len(text) and text[self.at] not in "\r\n":
                    kept.append(self.at)
                elif text.startswith("\r\n", self.at):
                    self.at += 1
            elif text.startswith("$(", self.at) or text.startswith("{{", self.at):
                end = self.closing()
                self.note_substitution()
                kept.extend(range(self.at, end))
                self.at = end
                continue
            elif char == "<" and (match := re.match(r"<[A-Za-z][\w -]*>", text[self.at :])):
                kept.extend(range(self.at, self.at + match.end()))
                self.at += match.end()
                continue
            elif char in " \t\r\n;&|()<>":
                break
            else:
                kept.append(self.at)
            self.at += 1
        piece = "".join(text[index] for index in kept)
        offsets = [self.source.offsets[index] for index in kept]
        offsets.append(offsets[-1] + 1 if offsets else self.source.offsets[start])
        raw = text[start : self.at]
        return Word(Mapped(piece, offsets), quoted, bool(_VARIABLE.search(raw)))

    def closing(self) -> int:
        """Return the offset behind `$( … )` or `{{ … }}` that begins here."""
        if self.text.startswith("{{", self.at):
            end = self.text.find("}}", self.at)
            return len(self.text) if end < 0 else end + 2
        depth = 0
        for index in range(self.at + 1, len(self.text)):
            depth += (self.text[index] == "(") - (self.text[index] == ")")
            if depth == 0:
                return index + 1
        return len(self.text)

    def note_substitution(self) -> None:
        if self.text.startswith("$(", self.at):
            self.inner.append(self.source.cut(self.at + 2, self.closing() - 1))
