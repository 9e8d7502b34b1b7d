"""Every sentence exists in every language, mentions the same values, and can be said."""

import re
import string
from pathlib import Path

import pytest

from forensics.catalog.messages import LANGUAGES, Message, catalogue, render
from forensics.errors import InternalError

ROOT = Path(__file__).parents[2]
USED = re.compile(r'Message\(\s*"([a-z0-9_.]+)"')


def mentioned(template: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(template) if name}


def test_languages_say_the_same_things():
    english = catalogue("en")
    for lang in LANGUAGES:
        said = catalogue(lang)
        assert said.keys() == english.keys(), lang
        for key, template in said.items():
            assert mentioned(template) == mentioned(english[key]), (lang, key)


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_sentence_can_be_said_with_nothing_known(lang):
    for key, template in catalogue(lang).items():
        text = render(Message(key, dict.fromkeys(mentioned(template))), lang)
        assert text
        assert "None" not in text, key


def test_every_sentence_that_the_code_says_is_there():
    used = {
        key
        for package in ("forensics", "rules")
        for path in (ROOT / package).rglob("*.py")
        for key in USED.findall(path.read_text("utf-8"))
    }
    assert len(used) > 50
    assert used <= catalogue("en").keys()


def test_formats_of_values():
    from forensics.catalog import messages

    def said(template: str, **values) -> str:
        return messages._Formatter("en").vformat(template, (), values)

    assert said("{x:pct}", x=0.314) == "31.4 %"
    assert said("{x:num}", x=1234567.0) == "1,234,567"
    assert said("{x:dur}", x=0.04) == "40 ms"
    assert said("{x:dur}", x=12.0) == "12 s"
    assert said("{x:dur}", x=180.0) == "3 min"
    assert said("{x:utc}", x=1795973585.0) == "2026-11-29 17:33:05Z"
    assert said("{x:pct}", x=None) == "unknown"


def test_unknown_sentence_and_language_are_broken_promises():
    with pytest.raises(InternalError, match="no sentence"):
        render(Message("no.such.sentence"))
    with pytest.raises(InternalError, match="no message catalogue"):
        catalogue("xx")
