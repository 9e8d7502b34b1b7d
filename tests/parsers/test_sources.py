"""What operators name becomes streams of plain bytes, whatever it is packed in."""

import bz2
import errno
import gzip
import io
import lzma
import os
import socket
import tarfile
import zipfile

import pytest
import zstandard

import parsers
from forensics.errors import InputError
from parsers import reading
from parsers.interface import ReadOptions

LINE = (
    "INFO 05-12 08:{minute:02}:00 [loggers.py:80] Engine 000: Avg prompt throughput: 1.0 tokens/s, "
    "Avg generation throughput: 2.0 tokens/s, Running: {running} reqs, Waiting: 0 reqs, "
    "GPU KV cache usage: 1.0%\n"
)


def base(path):
    return path.rpartition("/")[2]


def log(*minutes):
    return "".join(LINE.format(minute=minute, running=minute) for minute in minutes).encode()


def tar_bytes(files, mode):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def zip_bytes(files):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return out.getvalue()


def zstd(data):
    return zstandard.ZstdCompressor().compress(data)


PACKED = {
    "server.log": lambda data: data,
    "server.log.gz": gzip.compress,
    "server.log.bz2": bz2.compress,
    "server.log.xz": lzma.compress,
    "server.log.zst": zstd,
    "nothing-in-the-name": gzip.compress,
    "two-members.gz": lambda data: gzip.compress(data[:100]) + gzip.compress(data[100:]),
    "two-frames.zst": lambda data: zstd(data[:100]) + zstd(data[100:]),
    "logs.zip": lambda data: zip_bytes({"deep/server.log": data}),
    "logs.tar": lambda data: tar_bytes({"deep/server.log": data}, "w:"),
    "logs.tar.gz": lambda data: tar_bytes({"deep/server.log": data}, "w:gz"),
    "logs.tar.xz": lambda data: tar_bytes({"deep/server.log": data}, "w:xz"),
    "logs.tar.zst": lambda data: zstd(tar_bytes({"deep/server.log": data}, "w:")),
    "gz-in.tar": lambda data: tar_bytes({"server.log.gz": gzip.compress(data)}, "w:"),
    "gz-in.tgz": lambda data: tar_bytes({"server.log.gz": gzip.compress(data)}, "w:gz"),
    "zip.gz": lambda data: gzip.compress(zip_bytes({"server.log": data})),
    "tar-in.zip": lambda data: zip_bytes({"a.tar": tar_bytes({"s.log": data}, "w:")}),
}


@pytest.mark.parametrize("name", sorted(PACKED))
def test_packing_does_not_matter(tmp_path, name):
    data = log(1, 2, 3)
    (tmp_path / name).write_bytes(PACKED[name](data))
    evidence = parsers.read([str(tmp_path / name)])
    stats = [fields for fields in evidence.events["fields"] if '"running":' in fields]
    assert [f'"running":{n}' in text for n, text in zip((1, 2, 3), stats, strict=True)] == [
        True
    ] * 3
    assert [one.bytes for one in evidence.coverage] == [len(data)]
    assert evidence.coverage[0].matched == 3


def test_members_of_archives_are_named(tmp_path):
    path = tmp_path / "logs.tgz"
    path.write_bytes(tar_bytes({"b/two.log": log(2), "a/one.log": log(1)}, "w:gz"))
    evidence = parsers.read([str(path)])
    assert [one.path for one in evidence.sources] == [f"{path}!a/one.log", f"{path}!b/two.log"]


def test_rotated_files_stand_in_the_order_they_were_written(tmp_path):
    (tmp_path / "server.log").write_bytes(log(30, 31))
    (tmp_path / "server.log.1").write_bytes(log(10, 11))
    (tmp_path / "server.log.2.gz").write_bytes(gzip.compress(log(20, 21)))
    (tmp_path / "other.log").write_bytes(log(1))
    evidence = parsers.read([str(tmp_path)])
    names = [base(one.path) for one in evidence.sources]
    assert names == ["other.log", "server.log.1", "server.log.2.gz", "server.log"]
    assert len({one.stream for one in evidence.sources}) == 2
    running = [int(text.split('"running":')[1].split(",")[0]) for text in evidence.events["fields"]]
    assert running == [1, 10, 11, 20, 21, 30, 31]


def test_a_rotated_file_may_begin_with_many_lines_without_a_stamp(tmp_path):
    access = b'INFO:     10.0.0.9:54321 - "POST /v1/completions HTTP/1.1" 200 OK\n'
    (tmp_path / "server.log").write_bytes(log(3))
    (tmp_path / "server.log.1").write_bytes(access * 3000 + log(2))
    (tmp_path / "server.log.2").write_bytes(access * 3000 + log(1))
    names = [base(one.path) for one in parsers.read([str(tmp_path)]).sources]
    assert names == ["server.log.2", "server.log.1", "server.log"]


def test_a_set_that_crosses_the_new_year_is_not_turned_round(tmp_path):
    old = LINE.format(minute=0, running=1).replace("05-12", "12-31")
    new = LINE.format(minute=0, running=2).replace("05-12", "01-01")
    (tmp_path / "server.log").write_text(new)
    (tmp_path / "server.log.1").write_text(old)
    evidence = parsers.read([str(tmp_path)])
    assert [base(one.path) for one in evidence.sources] == [
        "server.log.1",
        "server.log",
    ]


def test_what_cannot_be_read_is_named_and_the_rest_is_read(tmp_path):
    (tmp_path / "server.log").write_bytes(log(1))
    (tmp_path / "broken.zip").write_bytes(b"PK\x03\x04 no archive")
    (tmp_path / "photo.bin").write_bytes(bytes(range(256)) * 8)
    missing = str(tmp_path / "missing.log")
    evidence = parsers.read([str(tmp_path), missing])
    formats = {base(s.path): c for s, c in zip(evidence.sources, evidence.coverage, strict=True)}
    assert formats["server.log"].format == "vllm-log"
    assert formats["broken.zip"].format == "unreadable"
    assert formats["photo.bin"].format == "unrecognised"
    assert formats["missing.log"].note == f"{missing}: No such file or directory"


def test_what_is_no_file_in_a_folder_is_named(tmp_path, monkeypatch):
    folder = tmp_path / "logs"
    (folder / "closed").mkdir(parents=True)
    (folder / "server.log").write_bytes(log(1))
    os.mkfifo(folder / "pipe.log")
    (folder / "gone.log").symlink_to(tmp_path / "nothing")
    (folder / "elsewhere").symlink_to(tmp_path)
    with socket.socket(socket.AF_UNIX) as held:
        monkeypatch.chdir(folder)  # names of sockets are short
        held.bind("held.sock")
        evidence = parsers.read([str(folder)])
    notes = {base(s.path): c.note for s, c in zip(evidence.sources, evidence.coverage, strict=True)}
    told = {name: note and note.rpartition(": ")[2] for name, note in notes.items()}
    assert told == {
        "server.log": None,
        "pipe.log": "not a regular file",
        "held.sock": "not a regular file",
        "gone.log": "No such file or directory",
        "elsewhere": "a link to a folder is not followed; name the folder itself",
    }


def test_a_folder_that_may_not_be_entered_is_named(tmp_path, monkeypatch):
    (tmp_path / "closed").mkdir()
    (tmp_path / "server.log").write_bytes(log(1))
    scan = os.scandir

    def refusing(path):
        if base(str(path)) == "closed":
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", refusing)
    evidence = parsers.read([str(tmp_path)])
    assert evidence.coverage[1].note == f"{tmp_path}/closed: Permission denied"


def test_nothing_to_read_says_so(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        parsers.read([str(tmp_path / "missing.log")])
    with pytest.raises(InputError, match="no files there"):
        parsers.read([str(tmp_path)])


def test_a_packed_file_that_breaks_off_gives_what_it_has(tmp_path):
    data = log(*range(60)) * 40
    packed = gzip.compress(data)
    (tmp_path / "server.log.gz").write_bytes(packed[: len(packed) // 2])
    evidence = parsers.read([str(tmp_path / "server.log.gz")])
    assert evidence.events.height > 10
    assert "ends or breaks here" in evidence.coverage[0].note
    assert len(evidence.damages) == 1
    with pytest.raises(InputError, match="breaks here"):
        parsers.read([str(tmp_path / "server.log.gz")], ReadOptions(strict=True))


def test_the_limit_of_unpacking_is_kept_and_said(tmp_path):
    (tmp_path / "server.log.gz").write_bytes(gzip.compress(log(1) * 10_000))
    evidence = parsers.read(
        [str(tmp_path / "server.log.gz")], ReadOptions(max_decompressed_bytes=100_000)
    )
    assert evidence.coverage[0].bytes == 100_000
    assert "unpacks to more than 100000 bytes" in evidence.coverage[0].note


def test_a_decompression_bomb_is_stopped_by_its_ratio(monkeypatch, tmp_path):
    from parsers import compression

    monkeypatch.setattr(compression, "GUARD_BYTES", 1 << 20)
    bomb = log(1) + b"\0" * (64 << 20)
    (tmp_path / "bomb.xz").write_bytes(lzma.compress(bomb, preset=1))
    evidence = parsers.read([str(tmp_path / "bomb.xz")])
    assert evidence.coverage[0].bytes <= 8 << 20
    assert "decompression bomb" in evidence.coverage[0].note


def test_hidden_files_and_readmes_of_a_directory_are_left_alone(tmp_path):
    (tmp_path / "server.log").write_bytes(log(1))
    (tmp_path / "README.md").write_bytes(log(1))
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "x.log").write_bytes(log(1))
    assert [base(one.path) for one in parsers.read([str(tmp_path)]).sources] == ["server.log"]


def test_standard_input(monkeypatch):
    class Stdin:
        buffer = io.BytesIO(gzip.compress(log(1, 2)))

    monkeypatch.setattr("sys.stdin", Stdin)
    evidence = parsers.read(["-"])
    assert evidence.events.height == 2
    assert evidence.sources[0].path == "-"


def test_a_file_that_vanishes_after_it_was_found(tmp_path, monkeypatch):
    (tmp_path / "a.log").write_bytes(log(1))
    (tmp_path / "b.log").write_bytes(log(2))
    discover = reading.discover

    def vanishing(paths, limit):
        found = list(discover(paths, limit))
        (tmp_path / "a.log").unlink()
        return found

    monkeypatch.setattr(reading, "discover", vanishing)
    evidence = parsers.read([str(tmp_path)])
    assert [one.format for one in evidence.coverage] == ["unreadable", "vllm-log"]
