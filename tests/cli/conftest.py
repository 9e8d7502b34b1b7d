"""What all tests of commands share."""

import sys

import pytest

from forensics.cli.main import main


@pytest.fixture
def call(monkeypatch, capsys):
    """Run a command line; give its exit code, output and errors."""

    def called(*arguments):
        monkeypatch.setattr(sys, "argv", ["forensics", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        out, err = capsys.readouterr()
        return stop.value.code or 0, out, err

    return called
