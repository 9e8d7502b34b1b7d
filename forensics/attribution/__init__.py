"""A fall of the hit rate in its parts, and the figures of a window that rules compare."""

from forensics.attribution.attribute import attribute
from forensics.attribution.contents import Contents, contents_of
from forensics.attribution.counting import as_counted
from forensics.attribution.figures import Figures, figures
from forensics.attribution.records import Attribution, Part, Witness
from forensics.attribution.slowness import behind_ttft, grown_part

__all__ = [
    "Attribution",
    "Contents",
    "Figures",
    "Part",
    "Witness",
    "as_counted",
    "attribute",
    "behind_ttft",
    "contents_of",
    "figures",
    "grown_part",
]
