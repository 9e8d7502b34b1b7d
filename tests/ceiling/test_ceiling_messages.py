"""Every sentence of the ceiling exists in both languages, with the same values."""

import re
import tomllib
from importlib.resources import files
from pathlib import Path

import forensics
from forensics.catalog.messages import LANGUAGES

ROOT = Path(forensics.__file__).parent


def sentences(lang):
    text = files("forensics.catalog").joinpath("messages", lang, "ceiling.toml").read_text("utf-8")
    flat = {}
    for group, table in tomllib.loads(text)["ceiling"].items():
        flat |= {f"ceiling.{group}.{name}": sentence for name, sentence in table.items()}
    return flat


def placeholders(sentence):
    return set(re.findall(r"\{(\w+)(?::\w+)?\}", sentence))


def test_both_languages_say_the_same_with_the_same_values() -> None:
    english, korean = (sentences(lang) for lang in LANGUAGES)
    assert set(english) == set(korean)
    for key, sentence in english.items():
        assert placeholders(sentence) == placeholders(korean[key]), key
        assert sentence.isascii(), key
        # Column titles apart, a Korean sentence has Korean in it.
        assert korean[key] == sentence or re.search(r"[가-힣]", korean[key]), key


def test_every_key_in_the_code_has_a_sentence_and_every_sentence_a_key() -> None:
    used = set()
    for folder in ("ceiling", "capacity", "cli"):
        for path in (ROOT / folder).glob("*.py"):
            used |= set(re.findall(r'"(ceiling\.(?:note|refused|sweep)\.\w+)"', path.read_text()))
    used |= {f"ceiling.note.low_{reason}" for reason in ("sharing", "gap", "pool")}
    said = {key for key in sentences("en") if not key.startswith("ceiling.table.")}
    assert used - said == set()
    assert said - used == set()
