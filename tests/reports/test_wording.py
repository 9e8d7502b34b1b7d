"""Both languages say everything, with the same values; nothing has no name."""

import re
import string
import tomllib
from importlib.resources import files

import pytest

from forensics.catalog.messages import LANGUAGES, catalogue
from forensics.reports.wording import figure, interval, size
from forensics.timeline import SIGNALS

FOLDER = files("forensics.catalog").joinpath("messages")


def flat(tree, prefix=""):
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def sentences(lang):
    text = FOLDER.joinpath(lang, "reports.toml").read_text(encoding="utf-8")
    return dict(flat(tomllib.loads(text)))


def values_of(template):
    return {(name, spec) for _, name, spec, _ in string.Formatter().parse(template) if name}


def test_every_sentence_is_in_both_languages_with_the_same_values():
    english, korean = sentences("en"), sentences("ko")
    assert english.keys() == korean.keys()
    for key, template in english.items():
        assert values_of(template) == values_of(korean[key]), key


def test_korean_is_korean():
    same = {"reports.label.max_num_seqs", "reports.label.gpu"}
    for key, text in sentences("ko").items():
        assert key in same or re.search("[가-힣]", text), key


def test_no_sentence_is_left_over():
    """Each key is named in a module or a template, as a whole or as a family."""
    folder = files("forensics.reports")
    sources = [item for item in folder.iterdir() if item.name.endswith(".py")]
    sources += list(folder.joinpath("templates").iterdir())
    everything = "\n".join(item.read_text(encoding="utf-8") for item in sources)
    families = set(re.findall(r"""named\(\s*["'](\w+)""", everything))
    families |= set(re.findall(r'\bnamed\("(\w+)"\)', everything))
    families |= {"judgement"}
    for key in sentences("en"):
        _, family, name = key.split(".", 2)
        assert family in families or re.search(rf"\b{name}\b", everything), key


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_signal_has_a_name(lang):
    for signal in SIGNALS:
        assert f"reports.signal.{signal}" in catalogue(lang), signal


@pytest.mark.parametrize(
    ("value", "unit", "said"),
    [
        (0.797, "ratio", "79.7 %"),
        (0.0333, "s", "33 ms"),
        (4.378, "s", "4.38 s"),
        (27520.0, "tokens", "27,520 tokens"),
        (131072, "bytes", "128 KiB"),
        (None, "ratio", "–"),
        (0.0, "ratio", "0.0 %"),
        ("on\x1b", "text", "on\\x1b"),
    ],
)
def test_figures(value, unit, said):
    assert figure(value, unit, "en") == said


def test_an_interval_says_its_date_once():
    assert interval((1795973505.0, 1795973655.0)) == "2026-11-29 17:31:45–17:34:15Z"
    assert interval((1795973505.0, 1795973505.0)) == "2026-11-29 17:31:45Z"
    assert interval((1795973505.0, 1796059905.0)) == ("2026-11-29 17:31:45Z – 2026-11-30 17:31:45Z")


@pytest.mark.parametrize(
    ("count", "said"), [(0, "0 B"), (1023, "1023 B"), (2048, "2 KiB"), (3 * 2**30, "3.00 GiB")]
)
def test_size(count, said):
    assert size(count) == said
