"""Lines as syslog and journald print them: RFC 3164, RFC 5424, ``journalctl`` short.

A stamp without year and zone is dropped: vLLM's own, behind it, is of the same kind, and the two
may be in different zones.
"""

import re

from parsers.envelopes.interface import Layer
from parsers.envelopes.stamps import LEVEL, RFC3339, dated

_BSD = re.compile(
    r"(?:<\d{1,3}>)?(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [ \d]\d "
    r"\d\d:\d\d:\d\d(?:\.\d+)? "
    # ``ts`` puts nothing behind the stamp, syslog the program and often the host before it.
    rf"(?:(?={LEVEL}|\([A-Za-z][\w ]* pid=\d)|"
    r"(?:(?P<host>[\w.:-]+) )?(?P<tag>[\w./@-]+)(?:\[\d+\])?: ?)"
)
_JOURNAL = re.compile(  # short-full, short-unix, short-monotonic
    rf"(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) {RFC3339}(?: [A-Z]{{2,5}})?|"
    r"(?P<unix>\d{9,11}\.\d{6})|\[ *\d+\.\d{6}\]) (?P<host>[\w.:-]+) [\w./@-]+\[\d+\]: ?"
)
_IETF = re.compile(
    rf"<\d{{1,3}}>1 (?:{RFC3339}|-) (?P<host>\S+) (?P<app>\S+) (?P<proc>\S+) (?P<msgid>\S+) "
    r"(?:-|(?:\[(?:[^\]\\]|\\.)*\])+) ?(?:\ufeff)?"
)


def bsd(text: str) -> Layer | None:
    """Take off RFC 3164, which is also what ``journalctl`` prints by default."""
    match = _BSD.match(text)
    return None if match is None else Layer(text[match.end() :], instance=match["host"])


def journal(text: str) -> Layer | None:
    """Take off journalctl's longer forms; a zone named by letters other than UTC says nothing."""
    match = _JOURNAL.match(text)
    if match is None:
        return None
    outer = None if match["unix"] is None else float(match["unix"])
    if match["date"] is not None and match["zone"] is not None:
        when = dated(match["date"], match["time"], match["fraction"], match["zone"])
        outer = None if when is None else when[1]
    return Layer(text[match.end() :], outer, match["host"])


def ietf(text: str) -> Layer | None:
    """Take off RFC 5424; its stamp names its zone."""
    match = _IETF.match(text)
    if match is None:
        return None
    when = None
    if match["date"] is not None:
        when = dated(match["date"], match["time"], match["fraction"], match["zone"])
    outer = when[1] if when is not None and when[0] == "utc" else None
    host = None if match["host"] == "-" else match["host"]
    return Layer(text[match.end() :], outer, host)
