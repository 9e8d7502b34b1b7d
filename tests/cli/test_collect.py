"""`forensics collect`: what it asks for, writes, says, and exits with."""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from forensics.cli.live import fetched
from forensics.cli.main import main
from forensics.config import Options
from forensics.errors import InputError

LABELS = {"__name__": "vllm:num_requests_running", "job": "vllm", "instance": "a:8000"}
PAGE = b"# HELP vllm:num_requests_running x\nvllm:num_requests_running 3\n"


class Server(BaseHTTPRequestHandler):
    """Answers each path with what the test put there."""

    def log_message(self, *_):
        pass

    def do_GET(self):
        path = urlsplit(self.path).path
        self.server.seen.append((path, parse_qs(urlsplit(self.path).query), self.headers))
        status, body = self.server.pages.get(path, (404, b"not found"))
        self.send_response(status)
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def server():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    matrix = {
        "resultType": "matrix",
        "result": [{"metric": LABELS, "values": [[1795973250, "3"]]}],
    }
    server.pages = {
        "/api/v1/series": (200, json.dumps({"status": "success", "data": [LABELS]}).encode()),
        "/api/v1/query": (
            200,
            json.dumps({"status": "success", "data": matrix, "warnings": ["half"]}).encode(),
        ),
        "/metrics": (200, PAGE),
    }
    server.seen = []
    server.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def run(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["forensics", "collect", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code


def test_a_window_is_fetched(server, monkeypatch, tmp_path, capsys):
    out = tmp_path / "dump.json"
    code = run(
        monkeypatch,
        *(server.url, "-o", out, "--since", "30m", "--until", "2026-11-29T17:30:00Z"),
        *("--selector", 'job="vllm"', "--header", "X-Scope-OrgID: team"),
    )
    assert code == 0
    answers = [json.loads(line) for line in out.read_text().splitlines()]
    assert answers[0]["data"]["result"][0]["metric"] == LABELS
    assert list(tmp_path.iterdir()) == [out]
    path, query, headers = server.seen[1]
    assert path == "/api/v1/query"
    assert query["query"] == ['{__name__=~"(ray_)?vllm[:_].+", job="vllm"}[1800000ms]']
    assert query["time"] == ["1795973400.000"]
    assert headers["X-Scope-OrgID"] == "team"
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "forensics: the server warns: half" in captured.err
    assert "dump.json: 3 points" in captured.err


def test_the_login_comes_from_a_file_or_the_environment(server, monkeypatch, tmp_path):
    token = tmp_path / "token"
    token.write_text("from-file\n")
    out = tmp_path / "dump.json"
    monkeypatch.setenv("FORENSICS_TOKEN", "from-environment")
    assert run(monkeypatch, server.url, "-o", out, "-q") == 0
    assert run(monkeypatch, server.url, "-o", out, "-q", "--token-file", token) == 0
    sent = [headers["Authorization"] for _, _, headers in server.seen]
    assert sorted(set(sent)) == ["Bearer from-environment", "Bearer from-file"]


def test_a_failure_leaves_no_file_and_exits_with_3(server, monkeypatch, tmp_path, capsys):
    server.pages["/api/v1/query"] = (400, b'{"status":"error","error":"parse error: \\u2028 x"}')
    assert run(monkeypatch, server.url, "-o", tmp_path / "dump.json", "-q") == 3
    assert "refuses: HTTP 400: parse error" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("--since", "yesterday"),
        ("--step", "soon"),
        ("--selector", "job=vllm"),
        ("--header", "nothing"),
        ("--token-file", "/nowhere/token"),
        ("-o", "/nowhere/dump.json"),
        ("--scrape", "--every", "0s"),
    ],
)
def test_wrong_calls_exit_with_2(server, monkeypatch, tmp_path, arguments):
    monkeypatch.chdir(tmp_path)
    assert run(monkeypatch, server.url, *arguments) == 2


def test_a_metrics_page_is_recorded(server, monkeypatch, tmp_path, capsys):
    out = tmp_path / "dump.prom"
    page = server.url + "/metrics"
    assert run(monkeypatch, "--scrape", page, "-o", out, "--every", "10ms", "--for", "45ms") == 0
    lines = out.read_bytes().splitlines()
    assert lines.count(b"vllm:num_requests_running 3") == 5
    assert all(line.startswith(b"# 20") and line.endswith(b"Z") for line in lines[::3])
    assert capsys.readouterr().err == f"{out}: 5 scrapes, 0 failed\n"


def test_a_page_that_is_no_metrics_page(server, monkeypatch, tmp_path, capsys):
    server.pages["/metrics"] = (200, b"<html></html>")
    out = tmp_path / "dump.prom"
    assert run(monkeypatch, "--scrape", server.url + "/metrics", "-o", out) == 3
    assert "no metrics page" in capsys.readouterr().err
    assert not out.exists()


class Silent:
    def report(self, path, done, total):
        pass


def test_analyze_asks_for_the_window_of_its_options(server):
    options = Options(since_end_s=600.0, until=1795973400.0)
    with fetched(server.url, None, options, Silent()) as path:
        assert Path(path).read_bytes().count(b"\n") == 3
    assert not path.exists()
    assert server.seen[0][1]["start"] == ["1795972800.000"]
    server.pages["/api/v1/series"] = (200, b'{"status":"success","data":[]}')
    with (
        pytest.raises(InputError, match="no vLLM series in this window"),
        fetched(server.url, None, options, Silent()),
    ):
        pass
