"""Records as one JSON object per line: docker, journald, Loki, Fluent Bit, Elasticsearch, Python.

Where the message itself begins with vLLM's own head, the object is a wrapper and its stamp is the
wrapper's. Where it does not and the object states a level, the server's own formatter wrote it
(`VLLM_LOGGING_CONFIG_PATH`; built in since 0.32.0), and the stamp is the server's.
"""

import re

import orjson

from parsers.envelopes.containers import named
from parsers.envelopes.interface import Layer
from parsers.envelopes.stamps import instant

_MESSAGES = (
    "log",
    "MESSAGE",
    "line",
    "message",
    "msg",
    "textPayload",
    "event",
    "Line",
    "Message",
    "Log",  # Azure Monitor's, by table and agent
    "LogMessage",
    "LogEntry",
    "body",  # OpenTelemetry
    "text",
)
_STAMPS = (
    "time",
    "timestamp",
    "@timestamp",
    "asctime",
    "__REALTIME_TIMESTAMP",
    "ts",
    "date",
    "Time",
    "created",
    "TimeGenerated",
    "TimeStamp",
    "timeUnixNano",
)
_LEVELS = ("levelname", "level", "severity")
_INNER = ("_source", "jsonPayload")  # where Elasticsearch and Google Cloud keep the record itself
_DOCKER_KEYS = frozenset({"log", "stream", "time", "attrs"})
_HEADED = re.compile(
    r"(?:\x1b\[[\d;]*m|\([^()]* pid=\d+[^()]*\) ?)*"
    r"(?:\x1b\[[\d;]*m)*(?:DEBUG|INFO|WARNING|ERROR|CRITICAL)(?::| \d\d-\d\d )"
)
_TAGGED = re.compile(r"(?:\[\d+\] )?[\w.*/-]+(?::|\t) ?(?=[{\[])")
Record = dict[str, object]


def tagged(text: str) -> Layer | None:
    """Take off what Fluentd and Fluent Bit print before a record: a tag, a number and a tag."""
    match = _TAGGED.match(text)
    return None if match is None else json_object(text[match.end() :])


def json_object(text: str) -> Layer | None:
    """Take off a JSON object around a line."""
    if not text.startswith(("{", "[")) or not text.rstrip().endswith(("}", "]")):
        return None
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    outer: object = None
    if isinstance(value, list):
        # Fluent Bit's raw form: [stamp, {record}].
        if len(value) != 2 or not isinstance(value[1], dict):
            return None
        outer, value = value
        outer = outer[0] if isinstance(outer, list) and outer else outer
    return json_record(value, outer) if isinstance(value, dict) else None


def json_record(record: Record, stamp: object = None) -> Layer | None:
    """Take the line out of a structured record; None when there is none in it."""
    for name in _INNER:
        inner = record.get(name)
        if isinstance(inner, dict):
            record = record | inner
    message = _message(record)
    if message is None:
        return None
    when = instant(stamp)
    for name in _STAMPS:
        if when is not None:
            break
        when = instant(record.get(name))
    instance = _instance(record)
    level = next((record[name] for name in _LEVELS if isinstance(record.get(name), str)), None)
    partial = _is_partial(record, message)
    stream = record.get("stream")
    body = message.rstrip("\r\n")
    if level is None or "log" in record or _HEADED.match(body) is not None:
        outer = when[1] if when is not None and when[0] == "utc" else None
        own = when if when is not None and when[0] != "utc" else None
        return Layer(
            body, outer, instance, own, partial, stream if isinstance(stream, str) else None
        )
    return Layer(_process(record) + body + _trace(record), None, instance, when)


def _is_partial(record: Record, message: str) -> bool | None:
    """Tell whether a runtime cut the line here; None where the record cannot say.

    Shippers that read CRI keep its tag; docker's own file ends whole lines with a line feed, which
    shippers take off.
    """
    for name in ("logtag", "_p"):
        tag = record.get(name)
        if tag in ("P", "F"):
            return tag == "P"
    flag = record.get("partial_message")  # docker's fluentd driver
    if isinstance(flag, str):
        return record.get("partial_last") != "true"
    return (
        not message.endswith("\n")
        if record.keys() <= _DOCKER_KEYS <= record.keys() | {"attrs"}
        else None
    )


def _message(record: Record) -> str | None:
    for name in _MESSAGES:
        value = record.get(name)
        if isinstance(value, str):
            return value
        if name == "MESSAGE" and isinstance(value, list):
            # journald writes messages with control characters as a list of byte values.
            try:
                return bytes(value).decode(errors="replace")
            except (TypeError, ValueError):
                return None
    return None


def _process(record: Record) -> str:
    name, pid = record.get("processName"), record.get("process")
    if not isinstance(name, str) or name == "MainProcess" or not isinstance(pid, int):
        return ""
    return f"({name} pid={pid}) " if re.fullmatch(r"[A-Za-z][\w ]*", name) else ""


def _trace(record: Record) -> str:
    for name in ("exc_info", "exc_text", "exception", "stack_trace"):
        value = record.get(name)
        if isinstance(value, str) and value:
            return "\n" + value
    return ""


def _instance(record: Record) -> str | None:
    labels: dict[str, str] = {}
    for name in ("labels", "fields", "kubernetes", "resource", "stream", "container", "pod"):
        inner = record.get(name)
        if isinstance(inner, dict):
            _collect(inner, name, labels)
    for name, label in (
        ("CONTAINER_NAME", "container"),
        ("_HOSTNAME", "host"),
        ("host", "host"),
        ("hostname", "host"),
        ("pod", "pod"),
        ("pod_name", "pod"),
        ("instance", "instance"),
    ):
        value = record.get(name)
        if isinstance(value, str) and value:
            labels.setdefault(label, value)
    return named(labels)


def _collect(inner: Record, name: str, labels: dict[str, str]) -> None:
    for key, value in inner.items():
        if isinstance(value, str) and value:
            labels.setdefault(f"{name}_name" if key == "name" else key, value)
        elif isinstance(value, dict) and key in ("pod", "container", "labels"):
            _collect(value, key, labels)
