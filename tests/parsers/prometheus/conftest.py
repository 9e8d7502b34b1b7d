"""What the tests of the metrics formats share: recorded data and short ways to read bytes."""

import io
import json
import lzma
import tarfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from parsers.interface import Parsed, ReadOptions, Source
from parsers.prometheus import FORMATS

DATA = Path(__file__).parent / "data"

Read = Callable[..., Parsed]
Rows = Counter[tuple[object, ...]]


def _silent(_path: str, _done: int, _total: int) -> None:
    """Report no progress."""


def _source(data: bytes, name: str = "metrics.txt", mtime: float | None = 1795973250.0) -> Source:
    return Source(
        index=0,
        path=name,
        name=name,
        mtime=mtime,
        head=data[: 64 << 10],
        open=lambda: io.BytesIO(data),
        size=len(data),
    )


@pytest.fixture(scope="session")
def recognise() -> Callable[[bytes | str], str | None]:
    """Return the name of the format that takes some bytes."""

    def _recognise(data: bytes | str) -> str | None:
        source = _source(data.encode() if isinstance(data, str) else data)
        return next((one.name for one in FORMATS if one.recognises(source)), None)

    return _recognise


@pytest.fixture(scope="session")
def read() -> Read:
    """Read bytes with the format that takes them, every series kept unless told otherwise."""

    def _read(
        data: bytes | str,
        name: str = "metrics.txt",
        mtime: float | None = 1795973250.0,
        format: str | None = None,
        **options: object,
    ) -> Parsed:
        source = _source(data.encode() if isinstance(data, str) else data, name, mtime)
        wanted = ReadOptions(**{"known_series_only": False, **options})
        for one in FORMATS:
            if one.name == format or (format is None and one.recognises(source)):
                return one.parse(source, wanted, _silent)
        raise AssertionError("no format takes this")

    return _read


@pytest.fixture(scope="session")
def rows() -> Callable[[Parsed], list[dict[str, object]]]:
    """Join series and samples into one list of rows, labels unfolded, in the order read."""

    def _rows(parsed: Parsed) -> list[dict[str, object]]:
        joined = parsed.samples.join(
            parsed.series, on="series", how="left", maintain_order="left"
        ).drop("series", "source", "offset", "clock")
        found = joined.to_dicts()
        for row in found:
            row["labels"] = json.loads(row["labels"])
        return found

    return _rows


@pytest.fixture(scope="session")
def points() -> Callable[[Parsed], Rows]:
    """Return the multiset of (instance, engine, metric, labels, edge, stamp, value)."""

    def _points(parsed: Parsed) -> Rows:
        joined = parsed.samples.join(parsed.series, on="series", how="left")
        return Counter(
            joined.select(
                "instance", "engine", "metric", "labels", "edge", "stamp", "value"
            ).iter_rows()
        )

    return _points


@pytest.fixture(scope="session")
def scrapes() -> dict[str, bytes]:
    """Return the recorded /metrics texts by name."""
    with tarfile.open(DATA / "scrapes.tar.xz") as archive:
        return {member.name: archive.extractfile(member).read() for member in archive}


@pytest.fixture(scope="session")
def restart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with the recording of a restart."""
    place = tmp_path_factory.mktemp("restart")
    with lzma.open(DATA / "restart.tar.xz") as packed, tarfile.open(fileobj=packed) as archive:
        archive.extractall(place, filter="data")
    return place
