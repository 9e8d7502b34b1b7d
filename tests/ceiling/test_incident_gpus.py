"""The GPU of labelled incidents, end to end: by name, among candidates, or unknown but answered."""

import json
import tarfile
from pathlib import Path

import pytest

from forensics.config import Options
from forensics.pipeline import run

ARCHIVE = Path(__file__).parents[1] / "incidents" / "held-out.tar.xz"
EACH = 3
"""Incidents looked at per kind of evidence."""


@pytest.fixture(scope="module")
def chosen(tmp_path_factory):
    folder = tmp_path_factory.mktemp("incidents")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    found = {}
    for path in sorted(folder.glob("*/truth.json")):
        truth = json.loads(path.read_text())
        kind = tuple(truth["gpu_evidence"])
        if len(found.setdefault(kind, [])) < EACH:
            found[kind].append((path, truth["server"]))
    for path in folder.glob("*/truth.json"):
        # Nothing of the answer may be lying beside the question.
        path.unlink()
    return found


def answers(incidents):
    for path, server in incidents:
        outcome = run([str(path.parent)], Options())
        epoch = outcome.timeline.engines[0].diary.epochs[-1]
        yield server, epoch.gpu, outcome.analysis.ceilings[0]


def test_every_kind_of_evidence_is_there(chosen) -> None:
    assert set(chosen) == {(), ("dcgm",), ("memory line",), ("dcgm", "memory line")}


@pytest.mark.parametrize("kind", [("dcgm",), ("dcgm", "memory line")])
def test_a_device_name_names_the_gpu(chosen, kind) -> None:
    for server, gpu, ceiling in answers(chosen[kind]):
        assert gpu.name == server["gpu"]
        assert ceiling.gpu == server["gpu"]
        assert ceiling.max_num_seqs is not None


def test_total_memory_has_the_gpu_among_its_candidates(chosen) -> None:
    for server, gpu, ceiling in answers(chosen[("memory line",)]):
        assert server["gpu"] in gpu.candidates
        assert server["gpu"] in ceiling.gpu
        assert "ceiling.note.gpu_candidates" in {note.key for note in ceiling.notes}


def test_an_unknown_gpu_is_said_and_still_answered(chosen) -> None:
    for _, gpu, ceiling in answers(chosen[()]):
        assert gpu.name is None
        assert gpu.candidates == ()
        assert ceiling.gpu is None
        assert "ceiling.note.gpu_unknown" in {note.key for note in ceiling.notes}
        assert ceiling.max_num_seqs is not None
        assert ceiling.max_num_seqs.low <= ceiling.max_num_seqs.value <= ceiling.max_num_seqs.high
