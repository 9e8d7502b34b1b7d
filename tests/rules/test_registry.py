"""The list of rules: public ids and names, a test file each, and a sentence in every language."""

import re
import string
from pathlib import Path

import pytest
import yaml

from forensics.catalog.messages import LANGUAGES, catalogue
from rules import RULES

ROOT = Path(__file__).parents[2]
CAUSES = {
    "PC101": "preemption-cliff",
    "PC102": "eviction-pressure",
    "PC103": "prefix-diversity-loss",
    "PC104": "cold-cache",
    "PC105": "caching-disabled",
    "PC106": "sub-block-prefix",
    "PC107": "counting-artifact",
    "PC108": "low-reuse-workload",
    "PC109": "stuck-cache",
    "KV201": "kv-capacity-queueing",
    "KV202": "preemption-thrash",
    "KV203": "long-context-hog",
    "KV204": "pool-too-small",
    "SCH301": "seat-limit",
    "SCH302": "compute-plateau",
    "SCH303": "prefill-bound",
    "SCH304": "replica-imbalance",
    "SCH305": "overload-shedding",
    "SCH306": "client-aborts",
    "ENG501": "engine-stall",
    "ENG502": "engine-crash",
}
_KEY = re.compile(r'Message\(\s*(?:"([^"]+)"(?: if [^,()]+(?:\([^)]*\))?[^,]* else "([^"]+)")?)')


def test_ids_and_names_are_the_public_ones() -> None:
    assert {rule.id: rule.name for rule in RULES} == CAUSES


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_every_rule_has_firing_and_silent_cases(rule) -> None:
    module = Path(type(rule).__module__.replace(".", "/"))
    path = ROOT / "tests" / module.with_suffix(".yaml")
    assert (path.parent / f"test_{path.stem}.py").exists()
    document = yaml.load(path.read_text(encoding="utf-8"), yaml.BaseLoader)
    assert document["rule"] == rule.id
    cases = document["cases"]
    assert sum("fires" in case for case in cases) >= 1
    assert sum("silent" in case for case in cases) >= 3
    names = [case["name"] for case in cases]
    assert len(names) == len(set(names))


def test_every_message_of_a_rule_has_its_sentence() -> None:
    keys: set[str] = set()
    for path in sorted((ROOT / "rules").rglob("*.py")):
        for match in _KEY.finditer(path.read_text(encoding="utf-8")):
            keys |= {key for key in match.groups() if key}
    assert len(keys) > 60
    for lang in LANGUAGES:
        assert keys - set(catalogue(lang)) == set()


@pytest.mark.parametrize("lang", [lang for lang in LANGUAGES if lang != "en"])
def test_languages_say_the_same_things(lang: str) -> None:
    english, other = catalogue("en"), catalogue(lang)
    assert set(english) == set(other)
    for key, sentence in english.items():
        assert _fields(sentence) == _fields(other[key]), key


def _fields(sentence: str) -> set[tuple[str, str]]:
    return {(name, spec or "") for _, name, spec, _ in string.Formatter().parse(sentence) if name}
