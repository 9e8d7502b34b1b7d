"""What the README shows is what is printed; what it names is there."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
shown_output = runpy.run_path(str(ROOT / "scripts" / "shown_output.py"))


def test_shown_output_is_what_is_printed():
    """Apart from the version and the second digit of a confidence, which each training moves."""
    fresh = shown_output["refreshed"](README)
    moves = re.compile(r"(?<=forensics )\d+\.\d+\.\d+|(?<=confidence 0\.\d)\d")
    assert moves.sub("", README) == moves.sub("", fresh), "python scripts/shown_output.py README.md"


def test_fresh_machine_needs_exactly_two_commands():
    section = README.split("## Try it")[1].split("## ")[0]
    (block,) = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
    commands = [line.split("#")[0].strip() for line in block.splitlines()]
    assert commands == ["sh samples/run", "bash .ci/run"]
    for command in commands:
        assert (ROOT / command.split()[1]).is_file()


@pytest.mark.parametrize(
    "name", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "samples/README.md"]
)
def test_links_lead_somewhere(name):
    text = (ROOT / name).read_text("utf-8")
    here = (ROOT / name).parent
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", text):
        assert (here / target).exists(), target


def test_every_command_is_in_the_readme():
    from forensics.cli.main import COMMANDS

    for command in COMMANDS:
        assert f"forensics {command.name}" in README, command.name


def test_python_example_is_the_public_interface(corpus):
    import forensics

    (block,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    imported = re.findall(r"^from forensics import (.+)$", block, re.MULTILINE)
    assert set(imported) <= set(forensics.__all__)
    folder = corpus / "a-healthy-v032"
    block = block.replace('"server.log", "metrics/"', f'"{folder}"')
    exec(compile(block, "README.md", "exec"), {})


def test_nothing_is_stale_is_noticed():
    assert "$ forensics" in README
    text = "```console\n$ forensics --version\nforensics 9.9.9\n```\n"
    assert shown_output["refreshed"](text) != text
