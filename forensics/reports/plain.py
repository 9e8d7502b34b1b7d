r"""Text from input → text that can only be read: nothing in it acts on a terminal or a page.

A label, a log line or a file name can hold terminal escapes, carriage returns, bidirectional
overrides (CVE-2021-42574) or markup. What cannot be seen is written out (``\x1b``, ``\u202e``);
what is markup in the target is escaped there by `markdown_text` and by the templates of HTML.
"""

import unicodedata
from dataclasses import replace

from forensics.catalog.messages import Message
from forensics.catalog.messages import render as say

# Cc control, Cf format (bidi, zero width, tags), Cs surrogates, Co private use, Cn unassigned,
# Zl and Zp line and paragraph separators.
_UNSEEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
_MARKDOWN = set("\\`*_{}[]<>()#+!|~$")


def plain(text: str, limit: int | None = None) -> str:
    r"""Write out what a reader could not see, and cut what is too long.

    >>> plain("\x1b[31mred\u202e")
    '\\x1b[31mred\\u202e'
    """
    if text.isascii() and text.isprintable():
        shown = text
    else:
        shown = "".join(_written(char) for char in text)
    if limit is not None and len(shown) > limit:
        return shown[: limit - 1] + "…"
    return shown


def _written(char: str) -> str:
    if unicodedata.category(char) not in _UNSEEN:
        return char
    code = ord(char)
    if code < 0x100:
        return {"\n": "\\n", "\t": " ", "\r": "\\r"}.get(char, f"\\x{code:02x}")
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def markdown_text(text: str) -> str:
    """Make text safe inside Markdown: no markup, no link, no mention, no cell border."""
    shown = "".join(f"\\{char}" if char in _MARKDOWN else char for char in plain(text))
    shown = shown.replace("&", "&amp;").replace("\\<", "&lt;").replace("\\>", "&gt;")
    # A zero-width joiner would hide; an entity shows the sign and pings nobody, links nothing.
    return shown.replace("@", "&#64;").replace("://", "&#58;//").replace("www.", "www&#46;")


def markdown_code(text: str, *, table: bool = False) -> str:
    """Make text safe as a code span; inside a table a bar would end the cell even there."""
    shown = plain(text)
    if table:
        shown = shown.replace("|", "\\|")
    fence = "`"
    while fence in shown:
        fence += "`"
    edge = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{fence}{edge}{shown}{edge}{fence}"


def sentence(message: Message, lang: str) -> str:
    """Say a message for a terminal: its values may come from input, its words do not."""
    return say(_with_values(message, markdown=False), lang)


def markdown_sentence(message: Message, lang: str) -> str:
    """Say a message in Markdown: the words keep their own markup, the values lose theirs."""
    return say(_with_values(message, markdown=True), lang)


def _with_values(message: Message, *, markdown: bool) -> Message:
    treat = markdown_text if markdown else plain
    values = {
        name: treat(value) if isinstance(value, str) else value
        for name, value in message.values.items()
    }
    return replace(message, values=values)
