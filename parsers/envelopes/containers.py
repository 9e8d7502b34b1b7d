"""Lines as container tools print them: docker, compose, CRI, kubectl, stern, logcli, Grafana."""

import re

from parsers.envelopes.interface import Layer
from parsers.envelopes.stamps import LEVEL, RFC3339, dated

_STAMPED = re.compile(
    rf"{RFC3339}[ \t](?:(?P<stream>stdout|stderr) (?P<tag>[FP])(?::\S+)? ?)?", re.ASCII
)
_LABELS = re.compile(r"\{(?P<labels>(?:[A-Za-z_]\w*=\"(?:[^\"\\]|\\.)*\"(?:, ?)?)*)\}[ \t]")
_LABEL = re.compile(r"(?P<name>[A-Za-z_]\w*)=\"(?P<value>(?:[^\"\\]|\\.)*)\"")
_HOSTED = re.compile(
    # Without a process number only where a record follows: prose has words before a colon too.
    rf"(?P<host>[\w.-]+) [\w./@-]+(?:\[\d+\]: ?|: (?={LEVEL}|\([A-Za-z][\w ]* pid=\d))"
)
_COMPOSE = re.compile(r"(?P<name>[A-Za-z][\w.-]*) +\| ?")
_KUBECTL = re.compile(r"\[(?:pod/)?(?P<pod>[a-z0-9][\w.-]*)/(?P<container>[\w.-]+)\] ?")
# Kubernetes ends names with characters that form no words (SafeEncodeString of apimachinery).
_STERN = re.compile(
    r"(?:[a-z][a-z0-9-]* )?(?P<pod>[a-z][a-z0-9.-]*-(?:\d+|[bcdfghjklmnpqrstvwxz2456789]{5})) "
    r"(?:› )?(?P<container>[a-z][a-z0-9-]*) "
)

INSTANCE_LABELS = ("pod", "pod_name", "instance", "container", "container_name", "host", "hostname")


def stamped(text: str) -> Layer | None:
    """Take off a full UTC stamp, a CRI stream tag, logcli's labels, journald's host and unit."""
    match = _STAMPED.match(text)
    if match is None or match["zone"] is None:
        return None
    when = dated(match["date"], match["time"], match["fraction"], match["zone"])
    if when is None:
        return None
    body, instance = text[match.end() :], None
    labels = _LABELS.match(body)
    if labels is not None:
        instance = named(dict(_LABEL.findall(labels["labels"])))
        body = body[labels.end() :]
    elif match["tag"] is None:
        hosted = _HOSTED.match(body)
        if hosted is not None and not _is_level(hosted["host"]):
            instance, body = hosted["host"], body[hosted.end() :]
    partial = None if match["tag"] is None else match["tag"] == "P"
    return Layer(body, when[1], instance, partial=partial, stream=match["stream"])


def _is_level(word: str) -> bool:
    return word.upper() in ("INFO", "DEBUG", "WARNING", "WARN", "ERROR", "CRITICAL")


def named(labels: dict[str, str]) -> str | None:
    """Return the label that names the place the line comes from."""
    return next((labels[name] for name in INSTANCE_LABELS if labels.get(name)), None)


def compose(text: str) -> Layer | None:
    """Take off the service name of docker compose: ``vllm-1  | ...``."""
    match = _COMPOSE.match(text)
    return None if match is None else Layer(text[match.end() :], instance=match["name"])


def kubectl(text: str) -> Layer | None:
    """Take off the prefix of ``kubectl logs --prefix``: ``[pod/name/container] ...``."""
    match = _KUBECTL.match(text)
    return None if match is None else Layer(text[match.end() :], instance=match["pod"])


def stern(text: str) -> Layer | None:
    """Take off stern's names: a namespace it may print, pod and container."""
    match = _STERN.match(text)
    return None if match is None else Layer(text[match.end() :], instance=match["pod"])
