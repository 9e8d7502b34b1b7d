"""Write the documentation pages of the causes from the rules' docstrings.

Usage: python scripts/cause_pages.py    (writes docs/rules/<ID>-<name>.md, table of docs/causes.md)
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from rules.pages import INDEX_CLOSE, INDEX_OPEN, index, pages  # noqa: E402


def main() -> None:
    """Write all pages."""
    for name, text in pages().items():
        (ROOT / "docs" / "rules" / name).write_text(text, encoding="utf-8")
    guide = ROOT / "docs" / "causes.md"
    text = guide.read_text(encoding="utf-8")
    before, _, rest = text.partition(INDEX_OPEN)
    _, _, after = rest.partition(INDEX_CLOSE)
    guide.write_text(f"{before}{INDEX_OPEN}\n{index()}{INDEX_CLOSE}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
