"""How sure verdicts are and how often they are right, on incidents that nothing was fitted to.

    python benchmarks/calibration.py [--folder tests/incidents]

Held-out incidents are judged as shipped. The weights were fitted to the others, so each of those is
judged by weights fitted without it (ten folds), everything else as shipped.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from unittest.mock import patch

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.diagnosis import Answer, calibration_lines, diagnose, score
from benchmarks.incident_set import incidents
from scripts.train_attribution import fit, folds_of, training_rows, without

# Where the product asks for its weights (the package exports a function of the module's name).
_ASKS = vars(sys.modules["forensics.attribution.attribute"])


def unseen_answers(folder: Path) -> Iterator[Answer]:
    """Judge the development incidents by weights that never saw them, then the held-out ones."""
    data, kinds, _ = training_rows(folder)
    fitted = sorted(kinds["simulated incidents"])
    models = [(out, fit(without(data, out))) for out in folds_of(fitted)]
    for case in incidents(folder, "development"):
        model = next((model for out, model in models if case.id in out), None)
        if model is None:
            yield diagnose(case)
            continue
        with patch.dict(_ASKS, combiner=partial(lambda fitted: fitted, model)):
            yield diagnose(case)
    for case in incidents(folder, "held-out"):
        yield diagnose(case)


def main(arguments: Sequence[str]) -> int:
    """Print the table of confidences."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path("tests/incidents"))
    options = parser.parse_args(arguments)
    print("\n".join(calibration_lines(score(list(unseen_answers(options.folder))))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
