"""Long paths → short ones for people: the folder that all files share is said once.

JSON keeps the paths as the operator named them; a page or a terminal has no room for the same forty
characters on every line of evidence.
"""

from dataclasses import replace

from forensics.analysis import Analysis
from forensics.reports.records import with_text

# Shorter folders do not hurt; taking them away would only make a reader look for them.
_WORTH_SHORTENING = 16


def shared_folder(analysis: Analysis) -> str:
    """Give the folder all files lie in, ending in a slash; "" when there is little to gain."""
    paths = [view.path for view in analysis.files if "/" in view.path]
    if not paths or len(paths) < len(analysis.files):
        return ""
    parts = [path.split("/")[:-1] for path in paths]
    shared = []
    for level in zip(*parts, strict=False):
        if len(set(level)) > 1:
            break
        shared.append(level[0])
    folder = "/".join(shared) + "/" if shared else ""
    return folder if len(folder) >= _WORTH_SHORTENING else ""


def without_folder(analysis: Analysis) -> Analysis:
    """Take the shared folder out of every place, so that ``server.log:1204`` is left."""
    folder = shared_folder(analysis)
    if not folder:
        return analysis
    short = with_text(analysis, lambda text: text.replace(folder, ""))
    return replace(short, reproduce=analysis.reproduce)
