"""An answer whose connection closes before its end is asked for again, not taken for whole."""

import http.server
import threading

import pytest

from forensics.errors import InputError
from parsers.prometheus.api_http import Connection


@pytest.fixture
def address():
    class Page(http.server.BaseHTTPRequestHandler):
        def log_message(self, *_):
            """Stay silent."""

        def do_GET(self):
            asked.append(self.path)
            self.send_response(200)
            self.send_header("Content-Length", "100")
            self.end_headers()
            self.wfile.write(b"x" * (100 if self.path == "/mended" and len(asked) > 1 else 40))

    asked = []
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_the_next_attempt_may_be_whole(address):
    connection = Connection(address, sleep=lambda _: None)
    assert connection.get("/mended") == b"x" * 100


def test_a_server_that_never_finishes_is_given_up(address):
    connection = Connection(address, retries=1, sleep=lambda _: None)
    with pytest.raises(InputError, match=r"40 bytes read, 60 more expected.; tried 2 times"):
        connection.get("/cut")
