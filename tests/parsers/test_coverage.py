"""Coverage says of each log how many lines and bytes were understood."""

import gzip

import pytest

import parsers
from forensics.coverage import KindBytes

RATE = "INFO 01-15 10:23:45 metrics.py:367] Prefix cache hit rate: GPU: 57.30%, CPU: 0.00%"
LINES = {
    RATE: "matched",  # 82 characters
    'INFO:     10.0.0.1:4321 - "GET /health HTTP/1.1" 200 OK': "matched",  # 55
    "INFO 01-15 10:23:46 [async_llm.py:270] Added request chatcmpl-1.": "matched",  # 64
    "": "ignored",
    "    return self.run()": "ignored",  # 21
    "INFO 01-15 10:23:47 [own.py:1] café opens": "unknown",  # 41, one of two bytes
}
DAMAGED = b"INFO 01-15 10:23:48 [own.py:1] \xff\xfe opens\n"  # 39 and a line feed


@pytest.fixture
def read(tmp_path):
    def coverage(data, name="server.log"):
        path = tmp_path / name
        path.write_bytes(data)
        (found,) = parsers.read([str(path)]).coverage
        return found

    return coverage


def test_bytes_of_each_kind_by_hand(read):
    data = "".join(f"{line}\n" for line in LINES).encode() + DAMAGED
    found = read(data)
    assert (found.matched, found.ignored, found.unknown, found.damaged) == (3, 2, 1, 1)
    assert found.kind_bytes == KindBytes(matched=204, ignored=23, unknown=43, damaged=40)
    assert found.bytes == len(data) == 310
    # The last line may lack its line feed.
    assert read(data[:-1]).kind_bytes == KindBytes(204, 23, 43, 39)
    # Carriage returns and a byte order mark are bytes of their lines.
    marked = b"\xef\xbb\xbf" + data.replace(b"\n", b"\r\n")
    assert read(marked).kind_bytes == KindBytes(210, 25, 44, 41)
    assert read(gzip.compress(data), "server.log.gz").kind_bytes == KindBytes(204, 23, 43, 40)


@pytest.mark.parametrize(
    ("before", "behind"),
    [
        ("2026-05-12T08:01:39.331095044Z ", ""),
        ("2026-05-12T08:01:39.331095044Z stdout F ", ""),
        ('{"log":"', '\\n","stream":"stderr","time":"2026-05-12T08:01:39.331095044Z"}'),
        ("[pod/vllm-7f9c4d-x2x4z/server] ", ""),
        ("vllm-1  | ", ""),
    ],
)
def test_a_wrapper_counts_with_its_line(read, before, behind):
    quoted = {line.replace('"', '\\"') if behind else line: kind for line, kind in LINES.items()}
    wrapped = {f"{before}{line}{behind}\n".encode(): kind for line, kind in quoted.items()}
    found = read(b"".join(wrapped))
    expected = {
        kind: sum(len(line) for line, its in wrapped.items() if its == kind)
        for kind in ("matched", "ignored", "unknown")
    }
    assert found.kind_bytes == KindBytes(**expected, damaged=0)
    assert (found.matched, found.ignored, found.unknown, found.damaged) == (3, 2, 1, 0)


def test_logs_that_are_turned_round_or_put_together_count_all_their_bytes(read):
    stamped = [f"2026-05-12T08:01:{second}Z {RATE}\n" for second in range(59, 10, -1)]
    backwards = "".join(stamped).encode()
    assert read(backwards).kind_bytes == KindBytes(len(backwards), 0, 0, 0)
    broken = "".join(f"{RATE[:70]}\n{RATE[70:]}\n" for _ in range(9)).encode() + b"\n"
    found = read(broken)
    assert (found.lines, found.matched) == (9, 9)
    assert found.kind_bytes == KindBytes(len(broken), 0, 0, 0)


def test_documents_and_metrics_have_no_bytes_by_line(read):
    assert read(b"vllm:num_requests_running 1\n# EOF\n", "m.txt").kind_bytes is None
    export = b'[{"line":"' + RATE.encode() + b'","timestamp":"1778572899331095044"}]'
    assert read(export, "export.json").kind_bytes is None
