"""The live client against a small server that behaves, and misbehaves, like Prometheus."""

import base64
import gzip
import json
import re
import shutil
import ssl
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from urllib.parse import parse_qs, urlsplit

import pytest

from forensics.errors import InputError, UsageError
from parsers.prometheus.api import Window, collect
from parsers.prometheus.api_http import Connection, Login, RefusedError, Tls

START = 1_795_970_000
RUNNING = {"__name__": "vllm:num_requests_running", "job": "vllm", "instance": "10.0.0.1:8000"}
UP = {"__name__": "up", "job": "vllm", "instance": "10.0.0.1:8000"}
OTHER = {"__name__": "up", "job": "node", "instance": "10.0.0.9:9100"}
GPU = {"__name__": "DCGM_FI_DEV_GPU_UTIL", "job": "dcgm", "instance": "10.0.0.1:9400"}
GO = {"__name__": "go_goroutines", "job": "vllm", "instance": "10.0.0.1:8000"}
MATCHER = re.compile(r'(\w+)(=~|=)("(?:[^"\\]|\\.)*")')


class Fake(BaseHTTPRequestHandler):
    """Two hours of samples every 15 s, exactly on the borders of pieces."""

    series = (RUNNING, UP, OTHER, GPU, GO)
    stamps = tuple(range(START, START + 7201, 15))

    def log_message(self, *_):
        pass

    def do_GET(self):
        behaviour = self.server.behaviour
        behaviour["seen"].append(self)
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        failures = behaviour.get("failures", [])
        if failures:
            status, headers, body = failures.pop(0)
            return self.answer(status, body, headers)
        needed = behaviour.get("authorization")
        if needed is not None and self.headers.get("Authorization") != needed:
            return self.answer(401, b"Unauthorized\n")
        prefix = behaviour.get("prefix", "")
        if parts.path == prefix + "/api/v1/series":
            chosen = self.chosen(query["match[]"])
            return self.data(chosen if behaviour.get("has_data", True) else [])
        if parts.path == prefix + "/api/v1/query":
            selector, length = re.fullmatch(r"(.*)\[(\d+)ms\]", query["query"]).groups()
            end = float(query["time"])
            start = end - int(length) / 1000
            open_left = behaviour.get("open_left", False)
            at = [t for t in self.stamps if (start < t if open_left else start <= t) and t <= end]
            return self.matrix(selector, at)
        if parts.path == prefix + "/api/v1/query_range":
            start, end, step = (float(query[name]) for name in ("start", "end", "step"))
            at = [start + k * step for k in range(int((end - start) / step) + 1)]
            return self.matrix(query["query"], at)
        return self.answer(404, b"404 page not found")

    def chosen(self, selector):
        found = []
        for labels in self.series:
            matchers = MATCHER.findall(selector)
            assert matchers
            if all(
                labels[name] == json.loads(text)
                if kind == "="
                else re.fullmatch(json.loads(text), labels[name])
                for name, kind, text in matchers
            ):
                found.append(labels)
        return found

    def matrix(self, selector, at):
        result = [
            {"metric": labels, "values": [[t, str(t - START)] for t in at]}
            for labels in self.chosen(selector)
            if at
        ]
        if len(at) * len(result) > self.server.behaviour.get("max_points", 10**9):
            message = "query processing would load too many samples into memory in query execution"
            body = {"status": "error", "errorType": "execution", "error": message}
            return self.answer(422, json.dumps(body).encode())
        return self.data({"resultType": "matrix", "result": result})

    def data(self, data):
        body = {"status": "success", "data": data, **self.server.behaviour.get("extra", {})}
        return self.answer(200, json.dumps(body, separators=(",", ":")).encode())

    def answer(self, status, body, headers=()):
        if "gzip" in self.headers.get("Accept-Encoding", ""):
            body = gzip.compress(body)
        self.send_response(status)
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def server():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Fake)
    server.behaviour = {"seen": []}
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


def address(server, scheme="http", prefix=""):
    return f"{scheme}://127.0.0.1:{server.server_port}{prefix}"


def fetched(url, window=None, **options):
    out = BytesIO()
    naps = []
    connection = Connection(url, sleep=naps.append, **options)
    window = window or Window(START, START + 7200)
    got = collect(connection, window, out, lambda *_: None)
    return out.getvalue(), got, naps


def found(read, rows, data):
    result = {}
    for row in rows(read(data)):
        result.setdefault((row["metric"], row["instance"]), []).append((row["stamp"], row["value"]))
    return result


@pytest.mark.parametrize("open_left", [False, True], ids=["before 3.0", "since 3.0"])
def test_raw_samples_of_the_series_that_matter_each_once(server, read, rows, open_left):
    server.behaviour["open_left"] = open_left
    data, got, _ = fetched(address(server))
    result = found(read, rows, data)
    first = 1 if open_left else 0  # an open range begins behind its start
    expected = [(float(t), float(t - START)) for t in Fake.stamps[first:]]
    assert result == {
        ("vllm:num_requests_running", "10.0.0.1:8000"): expected,
        ("up", "10.0.0.1:8000"): expected,
        ("DCGM_FI_DEV_GPU_UTIL", "10.0.0.1:9400"): expected,
    }
    assert got.answers == 4
    assert got.points == 3 * len(expected)


def test_a_piece_that_is_too_large_is_halved(server, read, rows):
    server.behaviour["max_points"] = 100
    data, got, _ = fetched(address(server))
    result = found(read, rows, data)
    assert got.answers > 12
    assert all(stamps == sorted(set(stamps)) for stamps in result.values())
    assert [len(stamps) for stamps in result.values()] == [481, 481, 481]


def test_pieces_grow_up_to_a_day_while_answers_are_small(server):
    _, got, _ = fetched(address(server), Window(START - 90 * 3600, START))
    asked = [parse_qs(urlsplit(one.path).query) for one in server.behaviour["seen"]]
    hours = [int(re.search(r"(\d+)ms", one["query"][0])[1]) / 3.6e6 for one in asked[1:]]
    assert hours == [1, 2, 4, 8, 16, 24, 24, 11, 24, 24, 24, 18, 24, 24, 24, 18]
    assert got.points == 3


def test_a_limit_that_no_piece_meets_is_told(server):
    server.behaviour["max_points"] = 1
    with pytest.raises(InputError, match="refuses: HTTP 422: query processing would load too many"):
        fetched(address(server))


def test_a_step_is_asked_for_below_the_point_limit(server, read, rows):
    window = Window(START, START + 7200, step_s=0.5)
    data, got, _ = fetched(address(server), window)
    result = found(read, rows, data)
    stamps = [t for t, _ in result["vllm:num_requests_running", "10.0.0.1:8000"]]
    assert stamps == [START + 0.5 * k for k in range(14401)]
    assert got.answers == 6


def test_the_selector_narrows_what_is_asked(server):
    fetched(address(server), Window(START, START + 60, selector='job="vllm"'))
    asked = [parse_qs(urlsplit(one.path).query) for one in server.behaviour["seen"]]
    assert asked[0]["match[]"] == ['{__name__=~"(ray_)?vllm[:_].+", job="vllm"}']
    assert asked[1]["query"] == ['{__name__=~"(ray_)?vllm[:_].+", job="vllm"}[60000ms]']
    assert asked[2]["query"][0].endswith(
        'instance=~"(10\\\\.0\\\\.0\\\\.1:8000)", job=~"(vllm)"}[60000ms]'
    )
    assert 'instance=~"(10\\\\.0\\\\.0\\\\.1)(:[0-9]+)?"' in asked[3]["query"][0]


@pytest.mark.parametrize(
    "selector", ["job=vllm", '} or up{job="x"', 'job="a" or', '{job="a"}', "x"]
)
def test_a_selector_that_is_none_is_refused_before_asking(server, selector):
    with pytest.raises(UsageError, match="no label matchers"):
        fetched(address(server), Window(START, START + 60, selector=selector))
    assert server.behaviour["seen"] == []


def test_failures_that_pass_are_waited_out(server):
    server.behaviour["failures"] = [
        (503, (), b"busy"),
        (429, (("Retry-After", "7"),), b""),
        (502, (), b"<html>bad gateway</html>"),
    ]
    _, got, naps = fetched(address(server))
    assert naps == [0.5, 7.0, 2.0]
    assert got.answers == 4


def test_a_server_that_keeps_failing_is_given_up(server):
    server.behaviour["failures"] = [(500, (), b"oh\nno \x1b[31m")] * 9
    with pytest.raises(InputError, match=r"does not answer \(HTTP 500: oh no \[31m; tried 5 times"):
        fetched(address(server))


def test_nobody_there(server):
    url = address(server)
    server.shutdown()
    server.server_close()
    with pytest.raises(InputError, match="does not answer"):
        fetched(url, retries=1)


def test_bearer_token_and_basic(server):
    server.behaviour["authorization"] = "Bearer s3cret"
    assert fetched(address(server), login=Login(token="s3cret\n"))[1].answers == 4
    pair = base64.b64encode("bob:pä:ss".encode()).decode()
    server.behaviour["authorization"] = f"Basic {pair}"
    assert fetched(address(server), login=Login(user="bob", password="pä:ss"))[1].answers == 4
    in_url = address(server).replace("127", "bob:p%C3%A4%3Ass@127", 1)
    assert fetched(in_url)[1].answers == 4
    with pytest.raises(InputError) as caught:
        fetched(in_url.replace("bob", "eve"))
    assert "HTTP 401: Unauthorized" in str(caught.value)
    assert "eve" not in str(caught.value)
    assert "s3cret" not in repr(Login(token="s3cret", password="s3cret"))


def test_headers_for_tenants(server):
    fetched(address(server), login=Login(headers={"X-Scope-OrgID": "team"}))
    assert {one.headers["X-Scope-OrgID"] for one in server.behaviour["seen"]} == {"team"}
    with pytest.raises(UsageError, match="line break"):
        fetched(address(server), login=Login(headers={"X": "a\nb"}))


@pytest.mark.parametrize(
    "page", ["", "/", "/graph", "/api/v1/query", "/api/v1/query_range?query=up"]
)
def test_the_address_of_a_page_will_do(server, page):
    server.behaviour["prefix"] = "/select/0/prometheus"
    _, got, _ = fetched(address(server, prefix="/select/0/prometheus" + page))
    assert got.answers == 4


def test_warnings_are_passed_on_once(server):
    server.behaviour["extra"] = {"warnings": ['store "a" is away', "partial"]}
    assert fetched(address(server))[1].warnings == ('store "a" is away', "partial")


def test_no_vllm_series_is_told_with_the_selector(server):
    server.behaviour["has_data"] = False
    with pytest.raises(InputError, match='no vLLM series that fit job="x" in this window'):
        fetched(address(server), Window(START, START + 60, selector='job="x"'))


def test_something_else_than_prometheus(server):
    server.behaviour["failures"] = [(200, (), b"<html>hello</html>")]
    with pytest.raises(InputError, match="does not answer like Prometheus"):
        fetched(address(server))


@pytest.mark.parametrize("url", ["prometheus:9090", "ftp://x/", "file:///etc/passwd", "http://"])
def test_no_address_of_a_server(url):
    with pytest.raises(UsageError, match="no address of a server"):
        fetched(url)


def test_a_login_does_not_follow_a_redirect_to_another_host(server):
    place = address(server).replace("127.0.0.1", "localhost")
    server.behaviour["failures"] = [(302, (("Location", place + "/api/v1/series"),), b"")]
    with pytest.raises(InputError, match="redirects to http://localhost: give that address"):
        fetched(address(server), login=Login(token="t"))
    assert len(server.behaviour["seen"]) == 1


def test_an_answer_without_bound_is_cut(server, monkeypatch):
    monkeypatch.setattr("parsers.prometheus.api_http.MAX_ANSWER_BYTES", 1000)
    server.behaviour["failures"] = [(200, (), b"x" * 5000)]
    with pytest.raises(RefusedError, match="larger than"):
        Connection(address(server)).get("/api/v1/query")


def test_windows_that_make_no_sense():
    with pytest.raises(UsageError, match="ends before it begins"):
        fetched("http://x", Window(10, 10))
    with pytest.raises(UsageError, match="at least a millisecond"):
        fetched("http://x", Window(10, 20, step_s=0))


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_tls(server, tmp_path):
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    command = (
        f"openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1 "
        f"-addext subjectAltName=IP:127.0.0.1 -keyout {key} -out {certificate}"
    )
    subprocess.run(command.split(), check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    url = address(server, "https")
    with pytest.raises(InputError, match="--ca-file names the certificates to trust"):
        fetched(url)
    assert fetched(url, tls=Tls(ca_file=certificate))[1].answers == 4
    assert fetched(url, tls=Tls(insecure=True))[1].answers == 4
    with pytest.raises(UsageError, match="TLS files cannot be used"):
        fetched(url, tls=Tls(ca_file=tmp_path / "missing.pem"))
