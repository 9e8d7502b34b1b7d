"""Access and lifecycle lines of the HTTP server (uvicorn): no stamp, no vLLM prefix.

Access lines are counted by status and by class of path, one event per stats interval: polls of
``/metrics`` and ``/health`` are the bulk and say nothing about users. 503 and 429 are shed load.
"""

import re

from parsers.vllm_log.interface import LogPattern, pattern

API_PATHS = ("/v1/", "/v2/", "/generate", "/invocations", "/score", "/pooling", "/classify")
HEALTH_PATHS = ("/health", "/ping", "/readyz", "/livez", "/healthz", "/load", "/is_sleeping")

ACCESS = re.compile(
    r'(?P<client>[^"]*?) ?- "(?P<method>[A-Z]+) (?P<path>[^"]*?) HTTP/(?P<http>[\d.]+)" '
    r"(?P<status>\d{3})(?: (?P<reason>.*))?"
)


def path_class(path: str) -> str:
    """Tell ``api``, ``metrics``, ``health`` or ``other`` by the path of a request."""
    bare = path.partition("?")[0]
    if bare.startswith("/metrics"):
        return "metrics"
    if bare in HEALTH_PATHS:
        return "health"
    return "api" if bare.startswith(API_PATHS) else "other"


LIFECYCLE: tuple[LogPattern, ...] = (
    pattern(
        "http_server_start",
        "Started server process [{pid:d}]",
        kind="http_server",
        constants={"state": "started"},
        since="0.2.0",
        until="0.33.0",
    ),
    pattern(
        "http_server_stop",
        "Finished server process [{pid:d}]",
        "Shutting down",
        kind="http_server",
        constants={"state": "stopping"},
        since="0.2.0",
        until="0.33.0",
    ),
    pattern(
        "http_server",
        "Waiting for application {what:w}",
        "Waiting for connections to close. {:s}",
        "Waiting for background tasks to complete. {:s}",
        "Application startup complete.",
        "Application shutdown complete.",
        "Uvicorn running on {address:s}",
        kind="http_server",
        since="0.2.0",
        until="0.33.0",
    ),
)
