"""Inputs and options → the command line that gives the same result, for reports to quote.

Only what changes the result is in it: no output files, no colours, and nobody's password.
"""

import shlex
from collections.abc import Sequence
from dataclasses import fields
from urllib.parse import urlsplit, urlunsplit

from forensics.config import Options
from forensics.reports.instants import iso

_INSTANTS = ("since", "until")
_NAMES = {"since_end_s": "since", "slo_ttft_s": "slo-ttft", "slo_itl_s": "slo-itl"}


def command_line(inputs: Sequence[str], prometheus: str | None, options: Options) -> str:
    """Write the command.

    >>> command_line(["server.log", "my metrics"], None, Options(gpu="A100-80GB"))
    "forensics analyze server.log 'my metrics' --gpu A100-80GB"
    """
    words = ["forensics", "analyze", *inputs]
    if prometheus is not None:
        words += ["--prometheus", _without_user(prometheus)]
    for item in fields(options):
        value = getattr(options, item.name)
        if value is None or value is False:
            continue
        words.append(f"--{_NAMES.get(item.name, item.name.replace('_', '-'))}")
        if item.name in _INSTANTS:
            words.append(iso(value))
        elif item.name.endswith("_s"):
            words.append(f"{value:g}s")
        elif value is not True:
            words.append(str(value))
    return shlex.join(words)


def _without_user(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
