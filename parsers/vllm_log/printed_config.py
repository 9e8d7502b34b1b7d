"""Configuration as a server prints it: argument lists and the dump of the engine's configuration.

The dump is a comma-separated list whose values nest brackets and quotes, so it is split with a
bracket counter. Argument lists are Python literals. Keys are kept as printed; strings lose their
quotes, everything else keeps its Python form. Secrets are not kept.
"""

import ast
import re
from collections.abc import Iterator

from parsers.vllm_log.interface import Fact, Fields

_OPEN = "([{<"
_CLOSE = ")]}>"
_MAX_DUMP = 1 << 20
_SECRET = re.compile(r"api_key|secret|password|credential(?!s$)|token$")


def _pieces(text: str) -> Iterator[str]:
    """Split at commas that stand in no bracket and no quote."""
    depth = 0
    quote = ""
    start = 0
    escaped = False
    for at, char in enumerate(text[:_MAX_DUMP]):
        if quote:
            if escaped:
                escaped = False
            elif char == "\\":
                escaped = True
            elif char == quote:
                quote = ""
        elif char in "'\"":
            quote = char
        elif char in _OPEN:
            depth += 1
        elif char in _CLOSE:
            # An unbalanced closing bracket (0.2.0 prints one at the end) must not hide the rest.
            depth = max(0, depth - 1)
        elif char == "," and depth == 0:
            yield text[start:at].strip()
            start = at + 1
    yield text[start:_MAX_DUMP].strip()


def split_pairs(text: str) -> Iterator[tuple[str, str]]:
    """Split ``key=value, key=value`` where values may nest brackets and quotes.

    >>> list(split_pairs("model='a, b', dtype=torch.half, rope={'x': [1, 2]}"))
    [('model', "'a, b'"), ('dtype', 'torch.half'), ('rope', "{'x': [1, 2]}")]
    """
    for piece in _pieces(text):
        key, equals, value = piece.partition("=")
        if equals and key.isidentifier():
            yield key, value


def unquoted(value: str) -> str:
    """Drop the quotes of a Python string literal; other text is returned as it is."""
    if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
        try:
            literal = ast.literal_eval(value)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return value[1:-1]
        return literal if isinstance(literal, str) else value
    return value


def config_facts(message: str, fields: Fields) -> Iterator[Fact]:
    """State what the dump of an engine's configuration says."""
    version = fields.get("version")
    if isinstance(version, str):
        yield Fact("vllm.version", version)
    generation = fields.get("generation")
    if isinstance(generation, str):
        yield Fact("engine.generation", generation)
    dump = message.partition(" with config: ")[2]
    if dump.count("(") < dump.count(")"):
        dump = dump.rstrip().removesuffix(")")
    for key, value in split_pairs(dump):
        stated = unquoted(value)
        yield Fact(f"config.{key}", stated)
        if key == "model":
            yield Fact("model.name", stated)
        elif key == "max_seq_len":
            yield Fact("max_model_len", stated)
        elif key == "kv_cache_dtype":
            yield Fact("kv_cache_dtype", stated)
        elif key == "enable_prefix_caching" and stated in ("True", "False"):
            yield Fact("prefix_caching.enabled", stated)


def _flag_facts(flags: Iterator[tuple[str, str]]) -> Iterator[Fact]:
    for key, value in flags:
        secret = _SECRET.search(key) is not None and value not in ("None", "")
        yield Fact(f"flag.{key}", "***" if secret else value)
        if key == "model" or (key == "model_tag" and value != "None"):
            yield Fact("model.name", value)


def namespace_facts(message: str, _fields: Fields) -> Iterator[Fact]:
    """State all arguments of a server."""
    inner = message.partition("Namespace(")[2].removesuffix(")")
    return _flag_facts((key, unquoted(value)) for key, value in split_pairs(inner))


def non_default_facts(message: str, _fields: Fields) -> Iterator[Fact]:
    """State the arguments that an operator gave."""
    text = message.partition(": ")[2]
    try:
        flags = ast.literal_eval(text[:_MAX_DUMP])
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        # Values that are not literals (objects, enums) are printed by their repr.
        return _flag_facts(_loose_pairs(text))
    if not isinstance(flags, dict):
        return iter(())
    return _flag_facts(
        (str(key), value if isinstance(value, str) else repr(value)) for key, value in flags.items()
    )


def _loose_pairs(text: str) -> Iterator[tuple[str, str]]:
    for piece in _pieces(text.strip().removeprefix("{").removesuffix("}")):
        key, colon, value = piece.partition(": ")
        if colon:
            yield unquoted(key), unquoted(value)
