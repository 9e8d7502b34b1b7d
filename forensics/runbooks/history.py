"""Running text that speaks of a name as a thing of the past, which is no mistake."""

import re

from forensics.runbooks.text import Lines

_PAST = re.compile(
    r"\b(?:renamed|removed|formerly|previously|deprecated|replaced|replaces|no longer|used to|"
    r"was called|were called|instead of|old name|obsolete|gone|dropped|successor|hidden|"
    r"has no effect|no effect|does nothing|do nothing|ignored|not available|does not exist|"
    r"don't use|do not use|never use|V0 only|only V0|only in V0)\b"
    r"|이전 이름|예전|옛|제거|삭제|더 이상|대신|구버전|바뀌|변경|없어|사라|무시|효과가 없|효과 없|"
    r"쓰지 마|사용하지|폐기",
    re.IGNORECASE,
)


def speaks_of_the_past(lines: Lines, offset: int) -> bool:
    """Tell whether the line at an offset calls what it names gone, renamed or without effect."""
    number, _ = lines.position(offset)
    return _PAST.search(lines.line(number).text) is not None
