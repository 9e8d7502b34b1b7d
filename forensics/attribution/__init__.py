"""A fall of the hit rate in its parts, and the figures of a window that rules compare."""

from forensics.attribution.attribute import attribute
from forensics.attribution.contents import Contents, contents_of
from forensics.attribution.counting import as_counted
from forensics.attribution.figures import Figures, figures
from forensics.attribution.records import Attribution, Part, Witness

__all__ = [
    "Attribution",
    "Contents",
    "Figures",
    "Part",
    "Witness",
    "as_counted",
    "attribute",
    "contents_of",
    "figures",
]
