"""Archives of many files, archives cut off on the way, and text as PowerShell writes it."""

import gzip
import io
import tarfile
import time
import zipfile

import pytest

import parsers
from forensics.errors import InputError

LINE = (
    "INFO 01-15 10:23:{:02d} [loggers.py:80] Engine 000: Avg prompt throughput: 1.0 tokens/s, "
    "Avg generation throughput: 2.0 tokens/s, Running: 3 reqs, Waiting: 0 reqs, "
    "GPU KV cache usage: 10.0%, Prefix cache hit rate: 57.3%\n"
)
LOG = "".join(LINE.format(second) for second in range(0, 60, 10)).encode()
ANSWER = (
    '{"status":"success","data":{"resultType":"vector","result":[{"metric":{"__name__":'
    '"vllm:num_requests_running","engine":"0","pod":"é"},"value":[1776303540.5,"8"]}]}}'
)
SCRAPE = '# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running{engine="0"} 8.0\n'


def formats(evidence):
    return [cover.format for cover in evidence.coverage]


def test_thousands_of_files_in_a_zip_take_no_longer_than_they_must(tmp_path):
    with zipfile.ZipFile(tmp_path / "scrapes.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(3000):
            archive.writestr(f"{number:05d}.prom", SCRAPE)
    began = time.process_time()
    evidence = parsers.read([str(tmp_path / "scrapes.zip")])
    assert time.process_time() - began < 60  # opening it anew for each took minutes
    assert evidence.samples.height == 3000


def tar_of_logs(count):
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w") as archive:
        for number in range(count):
            info = tarfile.TarInfo(f"node-{number}/server.log")
            info.size = len(LOG)
            archive.addfile(info, io.BytesIO(LOG))
    return held.getvalue()


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["tar", "tar.gz"])
def test_what_precedes_the_end_of_a_cut_archive_is_read(tmp_path, pack):
    whole = tar_of_logs(3)
    place = tmp_path / "logs.tar"
    place.write_bytes(pack(whole[: len(whole) // 2]))
    evidence = parsers.read([str(place)])
    assert formats(evidence).count("vllm-log") >= 1
    (refused,) = [cover for cover in evidence.coverage if cover.format == "unreadable"]
    assert "archive cannot be read beyond" in refused.note
    assert evidence.events["kind"].to_list().count("stats_periodic") >= 6


def test_a_compressed_file_cut_before_its_first_byte_says_so(tmp_path):
    (tmp_path / "server.log.gz").write_bytes(gzip.compress(LOG)[:12])
    with pytest.raises(InputError, match="compressed data ends or breaks here"):
        parsers.read([str(tmp_path / "server.log.gz")])


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-32"])
@pytest.mark.parametrize(("name", "text"), [("m.json", ANSWER), ("m.prom", SCRAPE)])
def test_metrics_as_powershell_writes_them(tmp_path, encoding, name, text):
    mark = "\ufeff" if encoding.endswith("e") else ""
    (tmp_path / name).write_bytes((mark + text).encode(encoding))
    evidence = parsers.read([str(tmp_path)])
    assert evidence.samples["value"].to_list() == [8.0]
    assert evidence.coverage[0].damaged == 0


def test_log_as_powershell_writes_it(tmp_path):
    banner = "INFO 01-15 10:23:00 [api_utils.py:347]  █  version 0.32.0\n"
    (tmp_path / "plain.log").write_text(banner + LOG.decode())
    (tmp_path / "wide.log").write_bytes((banner + LOG.decode()).encode("utf-16"))
    plain, wide = (parsers.read([str(tmp_path / name)]) for name in ("plain.log", "wide.log"))
    assert wide.events.equals(plain.events)
    assert wide.coverage[0].matched == plain.coverage[0].matched == 7
