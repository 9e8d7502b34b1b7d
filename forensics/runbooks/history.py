"""Running text that speaks of a name as a thing of the past, which is no mistake."""

import re

from forensics.runbooks.text import Lines

_PAST = re.compile(
    r"\b(?:renamed|removed|formerly|previously|deprecated|replaced|replaces|no longer|used to|"
    r"was called|were called|instead of|old name|obsolete|gone|dropped|successor|hidden|"
    r"has no effect|no effect|does nothing|do nothing|ignored|not available|does not exist|"
    r"don't use|do not use|never use|V0 only|only V0|only in V0|older?)\b"
    # A line that gives releases tells when something held: since 0.9.2, 0.5.0+, 0.3.1..0.8.5.
    r"|\b(?:until|up to|since|before|from|to|in|by) v?0\.\d+"
    r"|\b0\.\d+(?:\.\d+)?(?:\+| ?\.\. ?0| ?[-–] ?0\.| ?(?:부터|까지|이후|이전|에서))"
    r"|이전 이름|예전|옛|제거|삭제|더 이상|대신|구버전|바뀌|변경|없어|사라|무시|효과가 없|효과 없|"
    r"쓰지 마|사용하지|폐기",
    re.IGNORECASE,
)


def speaks_of_the_past(lines: Lines, offset: int) -> bool:
    """Tell whether the line at an offset calls what it names gone, renamed or without effect."""
    number, _ = lines.position(offset)
    return _PAST.search(lines.line(number).text) is not None
