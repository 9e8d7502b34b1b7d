"""Vega-Lite specification → SVG text, without anything that runs or is fetched.

The converter takes about 0.7 s for its first drawing and 0.1 s for each further one (two cores), so
it is loaded only by the reports that draw.
"""

import html
import re
from collections.abc import Mapping

Spec = Mapping[str, object]
_SVG = re.compile(r"<svg\b[^>]*>")
_ID = re.compile(r'\bid="([^"]+)"')
_USED_ID = re.compile(r'(\bid="|url\(#)([^")]+)("|\))')
_TOO_PRECISE = re.compile(r"(\d+\.\d\d)\d+")


def svg(spec: Spec, title: str, ids: str = "clip") -> str:
    """Draw a specification; the same one gives the same text.

    Coordinates keep two decimals (a hundredth of a pixel), which halves the size.

    Args:
        spec: what to draw.
        title: what a screen reader says.
        ids: how the ids inside begin; several drawings in one page need different ones.
    """
    import vl_convert

    drawn = str(vl_convert.vegalite_to_svg(dict(spec)))
    drawn = _renumbered(_TOO_PRECISE.sub(r"\1", drawn), ids)
    opening = _SVG.search(drawn)
    if opening is None:
        return drawn
    head = opening[0].replace("<svg ", '<svg role="img" ', 1)
    label = f"<title>{html.escape(title)}</title>"
    return drawn[: opening.start()] + head + label + drawn[opening.end() :]


def _renumbered(drawn: str, ids: str) -> str:
    """Number ids from 0: the converter goes on counting from one drawing to the next."""
    seen: dict[str, str] = {}
    for old in _ID.findall(drawn):
        seen.setdefault(old, f"{ids}{len(seen)}")
    return _USED_ID.sub(lambda found: found[1] + seen.get(found[2], found[2]) + found[3], drawn)
