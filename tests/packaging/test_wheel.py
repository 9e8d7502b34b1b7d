"""The wheel ships the three packages with their data files, and nothing else."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("forensics", "parsers", "rules")


@pytest.fixture(scope="module")
def shipped(tmp_path_factory):
    pytest.importorskip("hatchling", reason="hatchling is not installed")
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name).decode("utf-8", "replace") for name in archive.namelist()}


def test_three_packages_and_their_metadata(shipped):
    tops = {name.split("/")[0] for name in shipped}
    metadata = {name for name in tops if name.endswith(".dist-info")}
    assert tops - metadata == set(PACKAGES)
    assert len(metadata) == 1


def test_every_file_of_the_packages_is_shipped(shipped):
    here = {
        str(path.relative_to(ROOT))
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {name for name in shipped if name.startswith(PACKAGES)} >= here - {""}
    for suffix in (".toml", ".schema.json", ".j2", ".css", "py.typed"):
        assert any(name.endswith(suffix) for name in shipped), suffix


def test_console_script_and_licence(shipped):
    entry = next(text for name, text in shipped.items() if name.endswith("entry_points.txt"))
    assert "forensics = forensics.cli.main:main" in entry
    licence = next(text for name, text in shipped.items() if name.endswith("LICENSE"))
    assert "Apache License" in licence


def test_no_import_of_what_is_not_declared(shipped):
    """Tests and tools may use more; the product only what a plain installation brings."""
    metadata = next(text for name, text in shipped.items() if name.endswith("METADATA"))
    for tool in ("pytest", "hypothesis", "mypy", "ruff", "click"):
        assert f"Requires-Dist: {tool}" not in metadata
    for name, text in shipped.items():
        if name.endswith(".py"):
            assert "\nimport click\n" not in text, name
            assert "import pytest" not in text, name
