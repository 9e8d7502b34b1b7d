"""Write the documentation pages of the causes from the rules' docstrings.

Usage: python scripts/cause_pages.py    (writes docs/rules/<ID>-<name>.md, table of docs/causes.md)
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from page_files import write_pages  # noqa: E402

from rules.pages import INDEX_CLOSE, INDEX_OPEN, index, pages  # noqa: E402

if __name__ == "__main__":
    write_pages(ROOT / "docs", pages(), "causes.md", (INDEX_OPEN, INDEX_CLOSE), index())
