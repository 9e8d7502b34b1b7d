"""A fall of the hit rate in its parts, and the figures of a window that rules compare."""

from forensics.attribution.figures import Figures, figures
from forensics.attribution.records import Attribution, Part

__all__ = ["Attribution", "Figures", "Part", "figures"]
