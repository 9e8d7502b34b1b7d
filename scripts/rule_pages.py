"""Write the documentation pages of the runbook checks from their docstrings.

Usage: python scripts/rule_pages.py        (writes docs/rules/RB*.md and the table in docs/lint.md)
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from page_files import write_pages  # noqa: E402

from forensics.runbooks.pages import INDEX_CLOSE, INDEX_OPEN, index, pages  # noqa: E402

if __name__ == "__main__":
    write_pages(ROOT / "docs", pages(), "lint.md", (INDEX_OPEN, INDEX_CLOSE), index())
