import json
import tarfile
from pathlib import Path

import polars as pl
import pytest
from hypothesis import settings

from forensics.evidence import (
    EVENTS,
    FACTS,
    SAMPLES,
    SERIES,
    Evidence,
    FileCoverage,
    SourceInfo,
)

# A busy machine is no fault of the example at hand; time budgets are set around whole runs.
settings.register_profile("forensics", deadline=None)
settings.load_profile("forensics")

ARCHIVE = Path(__file__).parent / "corpus" / "corpus.tar.xz"


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    """Folder of the recordings, unpacked once: ``<recording>/server.log``, ``metrics/``, …"""
    folder = tmp_path_factory.mktemp("recordings")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    return folder / "corpus"


@pytest.fixture(scope="session")
def evidence_of():
    """Build evidence from few words: series, events and facts as tuples, all on one clock.

    A series is (metric, labels, [(stamp, value), …]); the labels ``instance``, ``engine``, ``edge``
    and ``file`` (the source) become columns. An event is (stamp, kind, fields[, columns]), a fact
    (stamp, key, value[, columns]). Source 0 is a log, source 1 a dump of metrics, unless
    ``sources`` says otherwise.
    """
    return build


def build(series=(), events=(), facts=(), *, clock="utc", sources=None, formats=None):
    sources = sources or (("server.log", "server.log"), ("metrics.json", "metrics.json"))
    named, points = [], []
    for number, (metric, labels, values) in enumerate(series):
        rest = dict(labels)
        row = {
            "series": number,
            "source": rest.pop("file", 1),
            "offset": number,
            "clock": "utc",
            "instance": rest.pop("instance", None),
            "engine": rest.pop("engine", None),
            "metric": metric,
            "edge": rest.pop("edge", None),
        }
        named.append({**row, "labels": json.dumps(rest, sort_keys=True)})
        points += [{"series": number, "stamp": at, "value": value} for at, value in values]
    lines = [
        {
            "source": 0, "offset": 100 * number, "clock": clock, "stamp": stamp, "outer": None,
            "instance": None, "engine": None, "process": None, "kind": kind,
            "fields": json.dumps(fields), **(more[0] if more else {}),
        }
        for number, (stamp, kind, fields, *more) in enumerate(events)
    ]  # fmt: skip
    stated = [
        {
            "source": 0, "offset": 50 + 100 * number, "clock": clock, "stamp": stamp,
            "outer": None, "instance": None, "engine": None, "key": key, "value": value,
            **(more[0] if more else {}),
        }
        for number, (stamp, key, value, *more) in enumerate(facts)
    ]  # fmt: skip
    formats = formats or ["vllm_log"] + ["query_json"] * (len(sources) - 1)
    return Evidence(
        tuple(SourceInfo(path, stream, path) for path, stream in sources),
        pl.DataFrame(named, schema=SERIES),
        pl.DataFrame(points, schema=SAMPLES),
        pl.DataFrame(lines, schema=EVENTS),
        pl.DataFrame(stated, schema=FACTS),
        tuple(FileCoverage(index, name, 0) for index, name in enumerate(formats)),
    )
