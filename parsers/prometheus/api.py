"""Asks a live Prometheus, Thanos, Mimir or VictoriaMetrics for the series that matter.

Raw samples are asked for (an instant query of a range, ``selector[1h]``): they keep the stamps of
the scrapes, so what comes back is what a TSDB dump would give. With a step the servers resample
instead (`query_range`). Either way in pieces that stay below the servers' limits; a piece that is
refused as too large is halved.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

from forensics.errors import InputError, UsageError
from parsers.prometheus.api_http import Connection, RefusedError

CHUNK_S = 3600.0
"""Length of the first piece of raw samples: 240 points per series at the usual 15 s."""

MAX_CHUNK_S = 86400.0
SMALL_BYTES = 8 << 20
"""After an answer smaller than this the next piece is twice as long, up to a day."""

MAX_POINTS = 10_000
"""Points per series of a piece with a step; Prometheus and Thanos refuse more than 11,000."""

MIN_CHUNK_S = 60.0
"""A piece this short that is still refused is given up."""

VLLM = '__name__=~"(ray_)?vllm[:_].+"'
BESIDE = (
    '__name__=~"up|process_(start_time_seconds|resident_memory_bytes|cpu_seconds_total)|python_info|'
    'http_requests_(total|created)|http_request_duration_.+|nv_(gpu|inference|energy)_.+"'
)
GPUS = '__name__=~"DCGM_FI_.+|nvidia_(smi|gpu)_.+"'

_TOO_MUCH = re.compile(
    r"too many|exceed|limit|maximum|too large|larger than|timed out|timeout|max-?samples", re.I
)
_WARNINGS = re.compile(rb'"warnings"\s*:\s*(\[(?:\s*"(?:[^"\\]++|\\.)*+"\s*,?)*\])')
_MATCHERS = re.compile(
    r'\s*[a-zA-Z_]\w*\s*(?:=~|!~|!=|=)\s*"(?:[^"\\]++|\\.)*+"\s*(?:,\s*|\Z)', re.DOTALL
)


@dataclass(frozen=True, slots=True)
class Window:
    """What to ask for.

    Attributes:
        start / end: UTC seconds.
        selector: label matchers that the vLLM series must fit, such as ``job="vllm"``.
        step_s: resample to this step; None for raw samples.
    """

    start: float
    end: float
    selector: str = ""
    step_s: float | None = None


@dataclass(frozen=True, slots=True)
class Collected:
    """What came back.

    Attributes:
        answers: pieces written.
        bytes: their size.
        points: samples in them.
        warnings: what the servers said besides, such as a partial answer of Thanos.
    """

    answers: int
    bytes: int
    points: int
    warnings: tuple[str, ...]


Progress = Callable[[str, int, int], None]
"""Called with (what is asked for, pieces done, pieces in all)."""


def collect(connection: Connection, window: Window, out: BinaryIO, progress: Progress) -> Collected:
    """Write the answers for a window to a stream, one JSON document per line.

    Raises:
        UsageError: the window or the selector makes no sense.
        InputError: the server cannot be reached, refuses, or has no vLLM series there.
    """
    _check(window)
    try:
        names = _targets(connection, window)
        queries = _queries(window, names)
        done = _Pieces(connection, window, out)
        for index, query in enumerate(queries):
            for share in done.ask(query):
                progress(connection.shown, round((index + share) * 100), len(queries) * 100)
    except RefusedError as error:
        raise InputError(f"{connection.shown} refuses: {error}", connection.shown) from error
    return Collected(done.answers, done.bytes, done.points, tuple(dict.fromkeys(done.warnings)))


@dataclass(frozen=True, slots=True)
class _Targets:
    """The scrape targets that expose vLLM series."""

    jobs: tuple[str, ...]
    instances: tuple[str, ...]


def _check(window: Window) -> None:
    if not window.end > window.start:
        raise UsageError("the window ends before it begins")
    if window.step_s is not None and not window.step_s >= 0.001:
        raise UsageError("the step must be at least a millisecond")
    position = 0
    while position < len(window.selector):
        matcher = _MATCHERS.match(window.selector, position)
        if matcher is None:
            raise UsageError(
                f"{window.selector!r} are no label matchers; write them as "
                '\'job="vllm", namespace=~"prod.*"\''
            )
        position = matcher.end()


def _targets(connection: Connection, window: Window) -> _Targets:
    """Ask which targets expose vLLM series in the window."""
    answer = connection.get(
        "/api/v1/series",
        {
            "match[]": _selected(VLLM, window.selector),
            "start": f"{window.start:.3f}",
            "end": f"{window.end:.3f}",
        },
    )
    try:
        found = json.loads(answer)["data"]
        labels = [(str(one.get("job", "")), str(one.get("instance", ""))) for one in found]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(
            f"{connection.shown} does not answer like Prometheus; give the address below which "
            "/api/v1/query is found",
            connection.shown,
        ) from error
    if not labels:
        chosen = f" that fit {window.selector}" if window.selector else ""
        raise InputError(
            f"{connection.shown} has no vLLM series{chosen} in this window", connection.shown
        )
    jobs, instances = ({pair[place] for pair in labels} - {""} for place in (0, 1))
    return _Targets(tuple(sorted(jobs)), tuple(sorted(instances)))


def _queries(window: Window, targets: _Targets) -> list[str]:
    """Return the selectors to ask for: vLLM, what the same targets expose besides, their GPUs."""
    queries = [_selected(VLLM, window.selector)]
    if targets.instances:
        same = [f"instance=~{_any_of(targets.instances)}"]
        if targets.jobs:
            same.append(f"job=~{_any_of(targets.jobs)}")
        queries.append(_selected(BESIDE, ", ".join(same)))
        # GPU exporters have ports and jobs of their own, but run on the same hosts.
        hosts = sorted({name.rpartition(":")[0] or name for name in targets.instances})
        queries.append(_selected(GPUS, f"instance=~{_any_of(tuple(hosts), suffix='(:[0-9]+)?')}"))
    return queries


def _selected(name: str, matchers: str) -> str:
    return "{" + ", ".join(part for part in (name, matchers.strip().strip(",")) if part) + "}"


def _any_of(texts: tuple[str, ...], suffix: str = "") -> str:
    """Return a quoted expression that matches exactly these texts."""
    pattern = "|".join(re.sub(r"([^\w\s:/-])", r"\\\1", text) for text in texts)
    return json.dumps(f"({pattern}){suffix}")


class _Pieces:
    """Asks for a window piece by piece and writes what comes."""

    def __init__(self, connection: Connection, window: Window, out: BinaryIO) -> None:
        self._connection = connection
        self._window = window
        self._out = out
        self._length = CHUNK_S if window.step_s is None else window.step_s * MAX_POINTS
        self._longest = MAX_CHUNK_S if window.step_s is None else self._length
        self.answers = 0
        self.bytes = 0
        self.points = 0
        self.warnings: list[str] = []

    def ask(self, query: str) -> Iterator[float]:
        """Ask for one selector over the window; yields the share that is done."""
        window = self._window
        start, first, step = window.start, True, window.step_s
        while first or start < window.end or (step is not None and start == window.end):
            end = min(start + self._length, window.end)
            try:
                answer = self._piece(query, start, end)
            except RefusedError as error:
                if self._length <= MIN_CHUNK_S or not _TOO_MUCH.search(str(error)):
                    raise
                self._length = self._longest = max(self._length / 2, MIN_CHUNK_S)
                continue
            self._write(answer if first or step is not None else _without_first(answer, start))
            first = False
            if len(answer) < SMALL_BYTES:
                self._length = min(self._length * 2, self._longest)
            # A step grid goes on one step behind the last point; raw pieces touch.
            start = end if step is None else start + step * (1 + (end - start) // step)
            yield min((start - window.start) / (window.end - window.start), 1.0)

    def _piece(self, query: str, start: float, end: float) -> bytes:
        step = self._window.step_s
        if step is not None:
            grid = {"start": f"{start:.3f}", "end": f"{end:.3f}", "step": f"{step:.3f}"}
            return self._connection.get("/api/v1/query_range", {"query": query, **grid})
        length = max(round((end - start) * 1000), 1)
        return self._connection.get(
            "/api/v1/query", {"query": f"{query}[{length}ms]", "time": f"{end:.3f}"}
        )

    def _write(self, answer: bytes) -> None:
        for match in _WARNINGS.finditer(answer, max(0, len(answer) - 65536)):
            self.warnings += [str(text) for text in json.loads(match[1])]
        self._out.write(answer.strip() + b"\n")
        self.answers += 1
        self.bytes += len(answer)
        self.points += answer.count(b'"],') + answer.count(b'"]]')


def _without_first(answer: bytes, stamp: float) -> bytes:
    """Drop the points at the border of a piece, which the piece before gave already.

    Prometheus before 3.0 counts both ends of a range in.
    """
    text = re.escape(f"{stamp:.3f}".rstrip("0").rstrip(".").encode())
    return re.sub(rb'"values":\[\[' + text + rb'(?:\.0+)?,"[^"]*"\],?', b'"values":[', answer)
