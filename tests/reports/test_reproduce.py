import pytest

from forensics.cli.command import command_line
from forensics.config import Options


@pytest.mark.parametrize(
    ("inputs", "prometheus", "options", "expected"),
    [
        (["a.log"], None, Options(), "forensics analyze a.log"),
        (["a b", "$(rm -rf x)"], None, Options(), "forensics analyze 'a b' '$(rm -rf x)'"),
        (
            ["a"],
            None,
            Options(since=1795973505.0, slo_ttft_s=2.0, anonymize=True, model="m"),
            "forensics analyze a --since 2026-11-29T17:31:45Z --model m --slo-ttft 2s --anonymize",
        ),
        (["a"], None, Options(since_end_s=3600.0), "forensics analyze a --since 3600s"),
        (
            [],
            "https://me:secret@prom.example:9090/x",
            Options(),
            "forensics analyze --prometheus https://prom.example:9090/x",
        ),
    ],
)
def test_command_line(inputs, prometheus, options, expected):
    assert command_line(inputs, prometheus, options) == expected
