import tarfile
from pathlib import Path

import pytest

ARCHIVE = Path(__file__).parent / "corpus" / "corpus.tar.xz"


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    """Folder of the recordings, unpacked once: ``<recording>/server.log``, ``metrics/``, …"""
    folder = tmp_path_factory.mktemp("recordings")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    return folder / "corpus"
