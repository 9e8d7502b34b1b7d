"""The README's two commands hold to their budgets and name no host; scripts can be imported."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = [ROOT / ".ci" / "run", ROOT / ".ci" / "environment", ROOT / "samples" / "run"]
_MOST_S = 15 * 60


def test_scripts_are_valid_and_executable():
    for path in SCRIPTS:
        shell = "bash" if path.name == "run" and path.parent.name == ".ci" else "sh"
        subprocess.run([shell, "-n", str(path)], check=True)
    assert all(path.stat().st_mode & 0o111 for path in SCRIPTS if path.name == "run")


def test_scripts_name_no_host():
    for path in SCRIPTS:
        assert not re.search(r"https?://|\w+\.(org|com|io)\b", path.read_text("utf-8")), path


def test_every_slow_part_has_a_budget_and_all_fit():
    text = SCRIPTS[0].read_text("utf-8")
    budgets = [int(number) for number in re.findall(r"^part (\d+) ", text, re.MULTILINE)]
    assert len(budgets) == 5
    assert sum(budgets) < _MOST_S
    assert text.count("-m pytest") == 1


@pytest.mark.slow
def test_scripts_and_benchmarks_import_what_is_there():
    """No other test runs most of them, and mypy leaves them out."""
    names = [
        f"{folder}.{path.stem}"
        for folder in ("benchmarks", "scripts")
        for path in sorted((ROOT / folder).glob("*.py"))
    ]
    assert len(names) > 12
    script = f"import importlib, sys; sys.path.append('scripts')\nfor name in {names}:"
    script += "\n    importlib.import_module(name)"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
