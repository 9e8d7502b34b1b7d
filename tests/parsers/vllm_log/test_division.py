"""However a log is divided or packed, it gives the same rows."""

import io
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from parsers.vllm_log import assemble as assembling
from parsers.vllm_log.chunks import ChunkReader
from parsers.vllm_log.division import stream_tasks
from parsers.vllm_log.file_division import Task, file_tasks
from parsers.vllm_log.parallel import read_task, read_tasks
from parsers.vllm_log.stretches import stretch
from tests.parsers import conftest as support

BIG = 1 << 30  # a size at which request steps are counted


def whole(data, size=BIG, **options):
    reader = ChunkReader(count_requests=size == BIG, **options)
    stream = io.BytesIO(data)
    while reader.fill(stream):
        pass
    return [stretch(reader.part)]


def parts(data, cuts):
    done = []
    borders = [0, *cuts, len(data)]
    for start, end in pairwise(borders):
        reader = ChunkReader(offset=start, count_requests=True)
        stream = io.BytesIO(data[start:end])
        while reader.fill(stream):
            pass
        done.append(stretch(reader.part))
    return done


def rows(stretches, size=BIG):
    parsed = assembling.assemble(stretches, 0, size, "vllm-log")
    return parsed.events.rows(), parsed.facts.rows(), parsed.coverage, parsed.damages


def line_ends(data):
    return [at + 1 for at, byte in enumerate(data) if byte == 10]


LOGS = ("restart-v032", "preemption-v085-v0", "preemption-v0112", "engine-dead-v085-v0")


@pytest.mark.parametrize("log", LOGS)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_cut_at_any_line_gives_the_same_rows(log, data):
    content = support.recorded(log)
    ends = line_ends(content)[:-1]
    cuts = sorted(set(data.draw(st.lists(st.sampled_from(ends), max_size=12))))
    assert rows(parts(content, cuts)) == rows(whole(content))
    with pytest.MonkeyPatch.context() as patch:
        # Sums that are added up to further sums are the same.
        patch.setattr(assembling, "MANY_TALLIES", 2)
        assert rows(parts(content, cuts)) == rows(whole(content))


@pytest.mark.parametrize("log", LOGS)
@pytest.mark.parametrize("chunk_bytes", [1 << 10, 4099, 65536])
def test_chunk_size_does_not_matter(log, chunk_bytes):
    content = support.recorded(log)
    assert rows(whole(content, chunk_bytes=chunk_bytes)) == rows(whole(content))


@pytest.mark.parametrize("log", LOGS)
def test_counted_requests_are_those_that_were_rows(log):
    """Small logs keep a row per request step; counting them afterwards gives the same events."""
    content = support.recorded(log)
    kept = whole(content, size=0)
    assert rows(kept, BIG)[:2] == rows(whole(content))[:2]


def test_worker_processes_give_the_same_rows(tmp_path):
    content = support.recorded("restart-v032") * 3
    path = tmp_path / "server.log"
    path.write_bytes(content)
    tasks = file_tasks(str(path), len(content), wanted=50_000)
    assert len(tasks) > 5
    assert [task.start for task in tasks[1:]] == [task.end for task in tasks[:-1]]
    alone = [read_task(task, count_requests=True) for task in tasks]
    shared = read_tasks(iter(tasks), count_requests=True, workers=1)
    assert rows(alone) == rows(shared) == rows(whole(content))


def test_worker_processes_are_handed_what_was_unpacked():
    content = support.recorded("restart-v032") * 3
    tasks = stream_tasks(io.BytesIO(content[7:]), 0, content[:7], wanted=60_000)
    shared = read_tasks(tasks, count_requests=True, workers=2)
    assert rows(shared) == rows(whole(content))


def test_a_worker_that_dies_costs_nothing(tmp_path, monkeypatch):
    from parsers.vllm_log import workers

    monkeypatch.setattr(workers, "_CHILD", "raise SystemExit(3)")
    content = support.recorded("restart-v032")
    path = tmp_path / "server.log"
    path.write_bytes(content)
    tasks = file_tasks(str(path), len(content), wanted=20_000)
    done = read_tasks(iter(tasks), count_requests=True, workers=2)
    assert rows(done) == rows(whole(content))


def test_no_stretch_ends_in_a_line_that_a_runtime_cut(tmp_path):
    lines = []
    for number in range(200):
        lines.append(f"2026-05-12T08:01:39.33Z stdout P INFO 05-12 08:01:39 part {number} ")
        lines.append("2026-05-12T08:01:39.33Z stdout F and its end")
    path = tmp_path / "server.log"
    path.write_text("\n".join(lines) + "\n")
    content = path.read_bytes()
    for task in file_tasks(str(path), len(content), wanted=1000)[1:]:
        assert b"stdout F" in content[: task.start].splitlines()[-1]
    streamed = list(stream_tasks(io.BytesIO(content), 0, b"", wanted=1000))
    assert len(streamed) > 10
    assert b"".join(task.data for task in streamed) == content
    for task in streamed:
        assert b"stdout F" in task.data.splitlines()[-1]
    assert file_tasks(str(path), 10, wanted=1000) == [Task(0, 10, str(path))]


@pytest.mark.parametrize("wanted", [1 << 16, 1 << 24])
def test_overlong_lines_of_a_stream_count_once(wanted):
    line = b"INFO 01-15 10:23:45 metrics.py:367] Prefix cache hit rate: GPU: 57.30%, CPU: 0.00%\n"
    content = line + b"x" * (9 << 20) + b"\n" + line + b"y" * (5 << 20) + b"\n" + line
    tasks = list(stream_tasks(io.BytesIO(content), 0, b"", wanted=wanted))
    for workers in (0, 1):
        done = read_tasks(iter(tasks), count_requests=True, workers=workers)
        assert rows(done) == rows(whole(content))
        kinds = [one.kind_bytes for one in done]
        assert sum(kind.damaged for kind in kinds) == (14 << 20) + 2
        assert sum(kind.matched for kind in kinds) == 3 * len(line)


@pytest.mark.parametrize("packed", [False, True])
def test_a_stream_that_is_spilled_in_parts_gives_the_same_rows(tmp_path, monkeypatch, packed):
    import gzip

    import parsers
    from parsers.vllm_log import format as log_format

    content = support.recorded("restart-v032") + support.recorded("engine-dead-v085-v0")
    path = tmp_path / ("server.log.gz" if packed else "server.log")
    path.write_bytes(gzip.compress(content) if packed else content)
    plain = parsers.read([str(path)])
    monkeypatch.setattr(log_format, "ALONE_BYTES", 20_000)
    monkeypatch.setattr("parsers.vllm_log.division.BLOCK_BYTES", 30_000)
    monkeypatch.setattr("parsers.vllm_log.chunks.CHUNK_BYTES", 5_000)
    spilled = parsers.read([str(path)])
    assert spilled.events.rows() == plain.events.rows()
    assert spilled.facts.rows() == plain.facts.rows()
    assert spilled.coverage == plain.coverage


def test_rows_spliced_into_a_frame_stand_where_sorting_would_put_them():
    import polars as pl

    from parsers.vllm_log.splice import changed_leading, changed_rows, interleaved

    main = pl.DataFrame({"offset": [1, 4, 4, 9], "name": ["a", "b", "c", "d"]})
    few = pl.DataFrame({"offset": [0, 4, 5, 5, 12], "name": ["u", "v", "w", "x", "y"]})
    assert interleaved(main, few)["name"].to_list() == list("uabcvwxdy")
    for cut in range(1, 4):
        pieces = pl.concat([main[:cut], main[:0], main[cut:]], rechunk=False)
        assert pieces.n_chunks() > 1
        assert interleaved(pieces, few)["name"].to_list() == list("uabcvwxdy")
    assert interleaved(main, few[:0]).equals(main)
    assert interleaved(main[:0], few).equals(few)
    upper = pl.col("name").str.to_uppercase()
    found = changed_rows(main, pl.col("offset") == 4, lambda rows: rows.with_columns(upper))
    assert found["name"].to_list() == ["a", "B", "C", "d"]
    found = changed_leading(main, pl.col("name") == "b", lambda rows: rows.with_columns(upper))
    assert found["name"].to_list() == ["A", "B", "c", "d"]


@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_pods_of_one_file_keep_their_own_stamps_wherever_it_is_cut(data):
    lines = []
    for number in range(60):
        pod = f"[pod/vllm-{number % 3}/server] "
        if number % 5 == 0:
            lines.append(
                f"{pod}INFO 01-15 1{number % 3}:00:{number:02} metrics.py:367] Prefix cache hit "
                f"rate: GPU: {number}.00%, CPU: 0.00%"
            )
        lines.append(f'{pod}INFO:     1.2.3.4:5 - "GET /health HTTP/1.1" 200 OK')
        lines.append(f"{pod}ValueError: number {number}")
    content = ("\n".join(lines) + "\n").encode()
    ends = line_ends(content)[:-1]
    cuts = sorted(set(data.draw(st.lists(st.sampled_from(ends), max_size=8))))
    assert rows(parts(content, cuts)) == rows(whole(content))
    events, *_ = rows(whole(content))
    assert {row[5] for row in events} == {"vllm-0", "vllm-1", "vllm-2"}
    for row in events:
        assert row[3] // 3600 % 24 == 10 + int(row[5][-1])


def test_a_worker_process_imports_no_library_of_tables():
    import subprocess
    import sys

    code = (
        "import parsers.vllm_log.parallel, sys; "
        "print(sorted({'polars', 'pyarrow'} & {*sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("child", [None, "raise SystemExit(3)", "import sys; sys.stdin.readline()"])
def test_a_large_log_is_begun_before_it_is_recognised(tmp_path, monkeypatch, child):
    """Workers read its first stretches; if they died, or were not needed, nothing is lost."""
    import parsers
    from parsers.vllm_log import workers

    for module in ("assemble", "format"):
        monkeypatch.setattr(f"parsers.vllm_log.{module}.REQUEST_ROWS_BYTES", 1000)
    content = support.recorded("restart-v032") * 3
    path = tmp_path / "server.log"
    path.write_bytes(content)
    plain = parsers.read([str(path)])
    assert workers.begin([str(path)]) is None
    for module in ("workers", "format"):
        monkeypatch.setattr(f"parsers.vllm_log.{module}.workers_for", lambda size: 2)
    monkeypatch.setattr(workers.file_tasks, "__defaults__", (50_000,))
    if child is not None:
        monkeypatch.setattr(workers, "_CHILD", child)
    begun = workers.begin(["missing", str(tmp_path), str(path)])
    folder = begun.folder.name
    numbers = [[index for index, _ in given] for given in begun.given]
    assert numbers == [[0, 2], [1, 3]]
    assert len(begun.tasks) in (8, 9)
    begun.abandon()
    assert not Path(folder).exists()
    found = parsers.read([str(path)])
    assert found.events.rows() == plain.events.rows()
    assert found.facts.rows() == plain.facts.rows()
    assert found.coverage == plain.coverage
    # The same file named twice: the workers that began it serve the first reading only.
    twice = parsers.read([str(path), str(path)])
    assert twice.events.height in (found.events.height, 2 * found.events.height)


def test_a_large_file_that_is_no_log_is_not_begun(tmp_path, monkeypatch):
    from parsers.vllm_log import workers

    monkeypatch.setattr(workers, "WORTH_BYTES", 100)
    path = tmp_path / "metrics.txt"
    path.write_text('vllm:num_requests_running{model_name="m"} 1\n' * 20)
    assert workers.begin([str(path), "", "-", "\0"]) is None
