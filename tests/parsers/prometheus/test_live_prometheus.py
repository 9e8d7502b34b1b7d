"""A real Prometheus that scrapes a replay of a recording: the same rows by every road."""

import contextlib
import io
import json
import shutil
import socket
import subprocess
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from forensics.cli.live import Pace, scrape
from parsers.prometheus.api import Window, collect
from parsers.prometheus.api_http import Connection
from parsers.prometheus.tsdb_dump import convert

pytestmark = [
    pytest.mark.prometheus,
    pytest.mark.skipif(
        shutil.which("prometheus") is None or shutil.which("promtool") is None,
        reason="prometheus and promtool are not installed",
    ),
]

SCRAPES = 8
CONFIG = """
global: {{scrape_interval: 500ms, scrape_timeout: 400ms}}
scrape_configs:
  - job_name: vllm
    static_configs: [{{targets: ["{target}"]}}]
"""


class Replay(BaseHTTPRequestHandler):
    """Serves the recorded scrapes one after the other, then the last one."""

    def log_message(self, *_):
        pass

    def do_GET(self):
        server = self.server
        text = server.texts[min(server.served, len(server.texts) - 1)]
        server.served += 1
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.end_headers()
        self.wfile.write(text)


@contextlib.contextmanager
def replaying(scrapes):
    """Serve the recording of a preemption cliff, each text twice."""
    names = sorted(name for name in scrapes if name.startswith("b-preemption-cliff-v032--"))
    server = ThreadingHTTPServer(("127.0.0.1", 0), Replay)
    server.texts = [scrapes[name] for name in names for _ in range(2)]
    server.served = 0
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def replay(scrapes):
    with replaying(scrapes) as server:
        yield server


@contextlib.contextmanager
def running(place, config):
    """Start a Prometheus on loopback; its data is in `place`."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    (place / "prometheus.yml").write_text(config)
    log = (place / "log").open("w")
    server = subprocess.Popen(
        [
            "prometheus",
            f"--config.file={place / 'prometheus.yml'}",
            f"--storage.tsdb.path={place / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
            "--web.enable-admin-api",
        ],
        stdout=log,
        stderr=subprocess.STDOUT,
    )
    url = f"http://127.0.0.1:{port}"

    def ready():
        with contextlib.suppress(OSError):
            return urllib.request.urlopen(f"{url}/-/ready").status == 200

    try:
        until(ready, server, place / "log")
        yield url, server
    finally:
        server.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(10)
        if server.poll() is None:
            server.kill()
            server.wait()
        log.close()


def until(true, server, log):
    """Wait for something that a running server does."""
    deadline = time.monotonic() + 60
    while not true():
        assert server.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.1)


@pytest.fixture(scope="module")
def prometheus(replay, tmp_path_factory):
    """Let a Prometheus scrape the replay for some seconds."""
    place = tmp_path_factory.mktemp("prometheus")
    config = CONFIG.format(target=f"127.0.0.1:{replay.server_port}")
    with running(place, config) as (url, server):
        until(lambda: replay.served >= SCRAPES, server, place / "log")
        time.sleep(0.5)  # what was scraped last is committed
        yield url, place / "data"


@pytest.fixture(scope="module")
def roads(prometheus, read):
    """Read one window by every road."""
    url, data = prometheus
    end = round(time.time(), 3)
    window = Window(end - 60, end)
    out = io.BytesIO()
    collect(Connection(url), window, out, lambda *_: None)
    federate = urllib.request.urlopen(f"{url}/federate?match[]=%7B__name__%21%3D%22%22%7D").read()
    request = urllib.request.Request(f"{url}/api/v1/admin/tsdb/snapshot", method="POST")
    name = json.load(urllib.request.urlopen(request))["data"]["name"]
    dump = subprocess.run(
        ["promtool", "tsdb", "dump", str(data)], capture_output=True, check=True
    ).stdout
    with convert(data / "snapshots" / name) as snapshot, convert(data) as live:
        texts = {"snapshot": snapshot.read(), "data directory": live.read()}
    bounds = {"known_series_only": True, "since": window.start, "until": window.end}
    roads = {"api": out.getvalue(), "promtool": dump, **texts}
    return {
        **{road: read(text, **bounds) for road, text in roads.items()},
        "federate": read(federate, known_series_only=True),
    }


def test_every_road_is_recognised(roads):
    assert {road: parsed.coverage.format for road, parsed in roads.items()} == {
        "api": "prometheus-api",
        "promtool": "promtool-tsdb-dump",
        "snapshot": "promtool-tsdb-dump",
        "data directory": "promtool-tsdb-dump",
        "federate": "prometheus-text",
    }
    assert all(parsed.coverage.damaged == 0 for parsed in roads.values())


@pytest.mark.parametrize("road", ["promtool", "snapshot", "data directory"])
def test_the_same_rows_by_every_road(roads, points, road):
    api = points(roads["api"])
    assert len(api) > SCRAPES * 400
    assert max(api.values()) == 1
    assert points(roads[road]) == api


def test_federate_gives_the_latest_of_the_same_series(roads, points):
    federated = points(roads["federate"])
    latest = max(stamp for *_, stamp, _ in federated)
    names = {row[:5] for row in points(roads["api"])}
    assert {row[:5] for row in federated} == names
    by_api = {row for row in points(roads["api"]) if row[5] >= latest}
    assert by_api <= set(federated)


def test_the_figures_are_the_recorded_ones(roads, rows, read, replay):
    wanted = ("vllm:num_requests_running", "vllm:num_preemptions_total", "up")
    recorded = {
        (row["metric"], row["value"])
        for text in replay.texts
        for row in rows(read(text))
        if row["metric"] in wanted
    }
    came = {
        (row["metric"], row["value"])
        for row in rows(roads["api"])
        if row["metric"] in wanted and row["instance"].endswith(str(replay.server_port))
    }
    assert ("up", 1.0) in came
    assert {pair for pair in came if pair[0] != "up"} <= recorded
    assert len({value for name, value in came if name == "vllm:num_requests_running"}) > 1


def test_a_step_gives_a_grid(prometheus, rows, read):
    url, _ = prometheus
    end = float(int(time.time()))
    out = io.BytesIO()
    collect(Connection(url), Window(end - 2, end, 'job="vllm"', 1.0), out, lambda *_: None)
    stamps = {row["stamp"] for row in rows(read(out.getvalue()))}
    assert stamps <= {end - 2, end - 1, end}


def test_recording_a_server_that_nobody_scrapes(scrapes, read, rows, tmp_path):
    out = tmp_path / "dump.prom"
    now = iter(range(1_795_973_250, 1_795_973_400))
    pace = Pace(5.0, 20.0, lambda: float(next(now)))
    with replaying(scrapes) as replay:
        url = f"http://127.0.0.1:{replay.server_port}/metrics"
        connection = Connection(url, sleep=lambda _: None, retries=0)
        assert scrape(connection, out, pace, _nobody) == (5, 0)
    parsed = read(out.read_bytes())
    running = [row for row in rows(parsed) if row["metric"] == "vllm:num_requests_running"]
    assert len({row["stamp"] for row in running}) == 5
    recorded = [
        row["value"]
        for text in replay.texts[:5]
        for row in rows(read(text))
        if row["metric"] == "vllm:num_requests_running"
    ]
    assert [row["value"] for row in running] == recorded
    assert (parsed.coverage.damaged, parsed.coverage.unknown) == (0, 0)


def test_a_recorded_restart_comes_back_as_it_was_dumped(restart, tmp_path, read, points):
    shutil.copytree(restart / "tsdb_snapshot", tmp_path / "data")
    out = io.BytesIO()
    with running(tmp_path, "global: {}") as (url, _):
        window = Window(1795973200.0, 1795973500.0, 'job="vllm"')
        got = collect(Connection(url), window, out, lambda *_: None)
    dumped = read((restart / "tsdb_dump.txt").read_bytes(), known_series_only=True)
    assert got.points == dumped.samples.height == 28143
    assert points(read(out.getvalue())) == points(dumped)


def _nobody(_taken, _failed):
    """Nobody is told."""
