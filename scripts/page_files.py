"""Pages made from docstrings → files under docs/, and the table of them in a guide."""

from collections.abc import Mapping
from pathlib import Path


def write_pages(
    docs: Path, pages: Mapping[str, str], guide: str, marks: tuple[str, str], index: str
) -> None:
    """Write every page, and renew what stands between the marks of the guide.

    Args:
        docs: the folder of the documentation.
        pages: text by file name under ``rules/``.
        guide: name of the page that holds the table.
        marks: the lines before and behind the table.
        index: the table.
    """
    for name, text in pages.items():
        (docs / "rules" / name).write_text(text, encoding="utf-8")
    opening, closing = marks
    before, _, rest = (docs / guide).read_text(encoding="utf-8").partition(opening)
    _, _, after = rest.partition(closing)
    renewed = f"{before}{opening}\n{index}{closing}{after}"
    (docs / guide).write_text(renewed, encoding="utf-8")
