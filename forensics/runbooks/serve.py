"""Commands that start a vLLM server: which flags they give, with which values, where.

Found in shell (`vllm serve`, `python -m vllm.entrypoints…`, `docker run … vllm/vllm-openai`), in
container specifications (`command`, `args`), and as single flags in running text.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from forensics.catalog.flags_catalog import flag
from forensics.catalog.versions import Generation
from forensics.runbooks.shell import Command, Word, commands
from forensics.runbooks.text import Mapped

_MODULES = re.compile(r"vllm\.entrypoints\.(?:openai\.)?api_server$|vllm\.entrypoints\.cli\.main$")
_SCRIPT = re.compile(r"(?:^|/)vllm/entrypoints/(?:openai/)?api_server\.py$")
IMAGE = re.compile(
    r"(?:^|/)vllm[\w-]*(?:/vllm[\w-]*)?"
    r"(?::(?:v?(?P<version>\d+\.\d+(?:\.\d+)?)[\w.-]*|[\w.-]+))?(?:@\S+)?$"
)
_SHELLS = frozenset({"sh", "bash", "zsh", "/bin/sh", "/bin/bash", "ash", "dash"})
_CONTAINER_TOOLS = frozenset({"docker", "podman", "nerdctl"})
_DASHES = "–—−"
"""En dash, em dash and minus sign: what chat and office programs make of two hyphens."""
_FLAG = re.compile(rf"(?:--|[{_DASHES}]-?)[A-Za-z][\w.-]*(?==|$)|-[a-zA-Z]{{1,3}}(?==|$|\d+$)")
_VALUE = re.compile(r"-?\d")


@dataclass(frozen=True, slots=True)
class Argument:
    """One flag as given.

    Attributes:
        name: as written, without a value.
        value: None when none is given.
        open: the value holds a variable or a placeholder.
    """

    name: Mapped
    value: Mapped | None
    open: bool


@dataclass(frozen=True, slots=True)
class ServeCommand:
    """A server start, or a single flag in running text.

    Attributes:
        head: the words that make it one; the flag itself for a single one.
        model: as given, or None.
        arguments: the flags, in order.
        version: the release of the container image, or None.
        engine: V0 or V1 when `VLLM_USE_V1` says so.
        complete: False for a single flag in running text.
    """

    head: Mapped
    model: Mapped | None
    arguments: tuple[Argument, ...]
    version: str | None = None
    engine: Generation | None = None
    complete: bool = True

    def given(self, name: str) -> Argument | None:
        """Return the last argument that gives a catalogued flag, or None."""
        for argument in reversed(self.arguments):
            found = flag(plain_dashes(argument.name.text))
            if found is not None and found.name == name:
                return argument
        return None

    def value(self, name: str) -> str | None:
        """Return the value of a flag; None when it is not given, has none or is not known."""
        argument = self.given(name)
        if argument is None or argument.value is None or argument.open:
            return None
        return argument.value.text


def plain_dashes(name: str) -> str:
    """Undo what chat programs make of `--`."""
    return re.sub(rf"^[{_DASHES}]-?", "--", name)


def serve_commands(found: Sequence[Command]) -> Iterator[ServeCommand]:
    """Yield the server starts among shell commands."""
    for command in found:
        words = command.words
        engine = _engine(command.assignments)
        for index, word in enumerate(words):
            name = word.text.text
            if (
                name in _SHELLS
                and index + 2 < len(words)
                and words[index + 1].text.text
                in (
                    "-c",
                    "-lc",
                    "-ec",
                    "-cx",
                )
            ):
                yield from serve_commands(commands(words[index + 2].text))
                break
            if name.rsplit("/", 1)[-1] == "vllm" and _next_is(words, index, "serve"):
                yield _from_words(word.text, words[index + 2 :], None, engine)
                break
            if (
                name == "-m"
                and index + 1 < len(words)
                and _MODULES.match(words[index + 1].text.text)
            ):
                yield _from_words(words[index + 1].text, words[index + 2 :], None, engine)
                break
            if index and _SCRIPT.search(name):
                yield _from_words(word.text, words[index + 1 :], None, engine)
                break
            if index and words[0].text.text in _CONTAINER_TOOLS and "run" in _texts(words[:index]):
                image = IMAGE.search(name)
                if image and not name.startswith("-") and "vllm" in name and "/" in name:
                    engine = engine or _engine(words[:index])
                    rest = _without_entry(words[index + 1 :])
                    yield _from_words(word.text, rest, image["version"], engine)
                    break


def from_container(
    words: Sequence[Word], image: str, engine: Generation | None, head: Mapped
) -> Iterator[ServeCommand]:
    """Yield the server start of a container: `command` and `args` put together."""
    tag = IMAGE.search(image)
    version = tag["version"] if tag else None
    started = list(serve_commands([Command((), tuple(words), None)]))
    if started:
        for command in started:
            yield ServeCommand(
                command.head,
                command.model,
                command.arguments,
                command.version or version,
                command.engine or engine,
            )
    elif tag and words:  # the image's own entry point is the server
        yield _from_words(head, words, version, engine)


def single_flag(text: Mapped) -> ServeCommand | None:
    """Return a lone `--flag`, `--flag value` or `--flag=value` of vLLM in running text, or None."""
    match = re.fullmatch(rf"((?:--|[{_DASHES}]-?)[A-Za-z][\w.-]*)(?:[= ]\s*(\S+))?", text.text)
    if match is None or flag(plain_dashes(match[1])) is None:
        return None
    value = text.cut(*match.span(2)) if match[2] else None
    name = text.cut(*match.span(1))
    is_open = bool(match[2] and re.search(r"[$<{…]|\.\.\.|^[NXnx]$", match[2]))
    return ServeCommand(name, None, (Argument(name, value, is_open),), complete=False)


def _from_words(
    head: Mapped, words: Sequence[Word], version: str | None, engine: Generation | None
) -> ServeCommand:
    arguments: list[Argument] = []
    model: Mapped | None = None
    index = 0
    while index < len(words):
        word = words[index]
        index += 1
        match = _FLAG.match(word.text.text)
        if match is None or _VALUE.match(word.text.text):
            if not arguments and model is None and not word.open:
                model = word.text
            continue
        name = word.text.cut(0, match.end())
        value: Mapped | None = None
        is_open = word.open
        if match.end() < len(word.text.text):
            skip = 1 if word.text.text[match.end()] == "=" else 0
            value = word.text.cut(match.end() + skip, len(word.text.text))
        else:
            known = flag(plain_dashes(name.text))
            following = words[index] if index < len(words) else None
            takes = known is None or known.kind != "bool"
            if (
                following is not None
                and _is_value(following)
                and (takes or following.text.text.lower() in ("true", "false"))
            ):
                value, is_open = following.text, following.open
                index += 1
        arguments.append(Argument(name, value, is_open))
        if plain_dashes(name.text) == "--model" and value is not None and not is_open:
            model = value
    return ServeCommand(head, model, tuple(arguments), version, engine)


def _is_value(word: Word) -> bool:
    text = word.text.text
    return bool(_VALUE.match(text)) or not (
        text.startswith("-") or (text[:1] in _DASHES and len(text) > 1)
    )


def _next_is(words: Sequence[Word], index: int, text: str) -> bool:
    return index + 1 < len(words) and words[index + 1].text.text == text


def _texts(words: Sequence[Word]) -> list[str]:
    return [word.text.text for word in words]


def _without_entry(words: Sequence[Word]) -> Sequence[Word]:
    """Drop `vllm serve` behind an image whose entry point was replaced."""
    if [word.text.text for word in words[:2]] == ["vllm", "serve"]:
        return words[2:]
    return words


def _engine(words: Sequence[Word]) -> Generation | None:
    for word in words:
        match = re.search(r"VLLM_USE_V1=([01])$", word.text.text)
        if match:
            return "V1" if match[1] == "1" else "V0"
    return None
