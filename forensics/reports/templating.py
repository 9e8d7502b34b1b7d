"""The templates' words and filters: what a template may say, and how input text is made safe in it.

In HTML everything is escaped by the template engine; in Markdown a template names the filter, and
`StrictUndefined` turns a misspelt name into an error instead of an empty place.
"""

from collections.abc import Callable
from functools import partial

import jinja2

from forensics.analysis import Where
from forensics.catalog.messages import Message, Value, say_duration, say_number, say_utc
from forensics.reports import wording
from forensics.reports.plain import (
    markdown_code,
    markdown_sentence,
    markdown_text,
    plain,
    sentence,
)


def environment(lang: str, *, html: bool) -> jinja2.Environment:
    """Make the environment of one language for HTML or Markdown templates."""
    env = jinja2.Environment(
        loader=jinja2.PackageLoader("forensics.reports"),
        autoescape=html,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
    )

    def say(key: str, **values: Value) -> str:
        return wording.word(key, lang, **values)

    env.globals |= {"say": say, "lang": lang}
    env.filters |= _filters(lang, html=html)
    return env


def _filters(lang: str, *, html: bool) -> dict[str, Callable[..., str]]:
    def named(name: str, family: str) -> str:
        return wording.named(family, name, lang)

    def figure(value: float | str | None, unit: str = "") -> str:
        return wording.figure(value, unit, lang)

    def said(message: Message) -> str:
        return sentence(message, lang) if html else markdown_sentence(message, lang)

    def place(where: Where | None) -> str:
        return wording.place(where)

    return {
        "named": named,
        "figure": figure,
        "said": said,
        "place": place,
        "plain": plain,
        "md": markdown_text,
        "code": partial(markdown_code, table=False),
        "cell": partial(markdown_code, table=True),
        "utc": say_utc,
        "clock": wording.clock,
        "span": wording.interval,
        "num": say_number,
        "dur": say_duration,
        "size": wording.size,
        "line": lambda text: " ".join(text.split()),
    }
