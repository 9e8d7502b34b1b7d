"""Settings files and targets."""

from pathlib import Path

import pytest

from forensics.errors import ConfigError
from forensics.runbooks.settings import Settings, find, load, matches
from forensics.runbooks.target import target


def test_pyproject(tmp_path: Path) -> None:
    path = tmp_path / "pyproject.toml"
    path.write_text(
        """
[tool.forensics]
vllm-version = ">=0.11,<0.13"
scrape-interval = "30s"
disable = ["RB113"]
fail-on = "never"
context = 2048

[[tool.forensics.overrides]]
paths = ["docs/legacy/**"]
vllm-version = "0.6"
"""
    )
    settings = load(path)
    assert settings.vllm_version == ">=0.11,<0.13"
    assert settings.scrape_interval_s == 30.0
    assert settings.fail_on is None
    assert settings.for_path("docs/legacy/old/a.md").vllm_version == "0.6"
    assert settings.for_path("docs/new/a.md").vllm_version == ">=0.11,<0.13"


def test_own_file_wins(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.forensics]\n")
    (tmp_path / "forensics.toml").write_text('vllm-version = "0.9"\n')
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    assert find(below) == tmp_path / "forensics.toml"
    assert load(find(below)).vllm_version == "0.9"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('vlm-version = "0.9"', "did you mean vllm-version"),
        ('vllm-version = "latest"', "no vLLM release"),
        ("vllm-version = 0.10", "in quotes"),
        ('scrape-interval = "soon"', "no duration"),
        ("context = -3", "no value"),
        ("context = true", "no value"),
        ('fail-on = "error"', "no value"),
        ('disable = "RB101"', "no value"),
        ("[[overrides]]\nengine = 'V0'", "paths"),
        ("[[overrides]]\npaths = ['a']\nengine = 'V2'", "no value"),
        ("not toml", "not a settings file"),
    ],
)
def test_what_is_no_setting(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "forensics.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=says):
        load(path)


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("docs/archive/**", "docs/archive/x/a.md", True),
        ("docs/archive/**", "./docs/archive/a.md", True),
        ("**/old.md", "old.md", True),
        ("*.json", "deep/down/a.json", True),
        ("docs/*.md", "other/a.md", False),
    ],
)
def test_patterns(pattern: str, path: str, expected: bool) -> None:
    assert matches(path, pattern) is expected


@pytest.mark.parametrize(
    ("stated", "first", "last"),
    [
        ("0.11.2", "0.11.2", "0.11.2"),
        ("0.11", "0.11.0", "0.11.2"),
        (">=0.9.2,<0.12", "0.9.2", "0.11.2"),
        ("0.9.2..0.10.2", "0.9.2", "0.10.2"),
        ("v0.9.1 - v0.10", "0.9.1", "0.10.2"),
        (">=0.32", "0.32.0", "0.33.0"),
        ("0.7.2.post1", "0.7.2", "0.7.2"),
        ("0.99", "0.33.0", "0.33.0"),
        (None, "0.33.0", "0.33.0"),
    ],
)
def test_targets(stated: str | None, first: str, last: str) -> None:
    releases = target(stated).releases
    assert (str(releases[0]), str(releases[-1])) == (first, last)


def test_engine_is_the_default_of_the_release_unless_forced() -> None:
    assert target("0.7.3").generation(target("0.7.3").releases[0]) == "V0"
    assert target("0.8.0").generation(target("0.8.0").releases[0]) == "V1"
    assert target("0.8.0", "V0").generation(target("0.8.0").releases[0]) == "V0"


def test_names_are_checked_per_path() -> None:
    assert Settings().for_path("x") == Settings()
