import gzip
from pathlib import Path

import polars as pl
import pytest

from parsers.interface import ReadOptions, Source

RECORDED = Path(__file__).parent / "recorded"


def recorded(name: str) -> bytes:
    return gzip.decompress((RECORDED / f"{name}.log.gz").read_bytes())


@pytest.fixture
def parse():
    """Parse bytes as a server log, as if they were a file."""
    import io

    from parsers.vllm_log.format import VllmLog

    def parsed(data: bytes, **options):
        source = Source(
            index=0,
            path="server.log",
            name="server.log",
            mtime=None,
            head=data[:65536],
            open=lambda: io.BytesIO(data),
            size=len(data),
        )
        return VllmLog().parse(source, ReadOptions(**options), lambda *_: None)

    return parsed


def content(frame: pl.DataFrame, *without: str) -> list[tuple]:
    """Rows without the columns that a wrapper may change."""
    return frame.drop("source", *without).rows()


@pytest.fixture
def parse_lines(parse):
    """Parse lines as a server log and return its events."""
    return lambda *lines: parse("".join(f"{line}\n" for line in lines).encode()).events
