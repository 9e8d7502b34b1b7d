"""Orders the files of rotated sets by what is in them.

``server.log`` may be the newest or the oldest of its set, and numbers count in either direction, so
names decide nothing: the first stamp in each file does. A set that crosses a new year is turned at
its largest gap, because vLLM's stamps have no year.
"""

from collections.abc import Sequence
from itertools import pairwise

from parsers.compression import BROKEN
from parsers.unpacking import HEAD_BYTES, Found
from parsers.vllm_log.format import first_stamp, is_text

_HALF_YEAR_S = 183 * 86400.0
_FURTHER_BYTES = 4 << 20  # access lines have no stamp: ten seconds of 4,000 requests a second


def in_content_order(found: Sequence[Found]) -> list[Found]:
    """Return the sources with each rotated set in the order it was written."""
    sets: dict[str, list[Found]] = {}
    for one in found:
        sets.setdefault(one.stream, []).append(one)
    ordered: list[Found] = []
    for members in sets.values():
        ordered.extend(members if len(members) == 1 else _ordered(members))
    return ordered


def _ordered(members: list[Found]) -> list[Found]:
    stamps = [(_first_stamp(one), at, one) for at, one in enumerate(members)]
    known = sorted((stamp, at, one) for stamp, at, one in stamps if stamp is not None)
    if len(known) > 1:
        times = [stamp for stamp, _, _ in known]
        gaps = [later - earlier for earlier, later in pairwise(times)]
        widest = max(range(len(gaps)), key=gaps.__getitem__)
        if gaps[widest] > _HALF_YEAR_S:
            known = known[widest + 1 :] + known[: widest + 1]
    unknown = [one for stamp, _, one in stamps if stamp is None]
    return [one for _, _, one in known] + unknown


def _first_stamp(found: Found) -> float | None:
    """Return the first stamp of a file, also where more than its head has none."""
    stamp = first_stamp(found.head)
    if stamp is not None or len(found.head) < HEAD_BYTES or not is_text(found.head):
        return stamp
    try:
        with found.open() as stream:
            return first_stamp(stream.read(_FURTHER_BYTES))
    except BROKEN:
        return None  # and the reason is told where the file is read
