"""The text readers against the parsers of prometheus_client: same samples on all they can read."""

import json
import math
import re
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import generate_latest
from prometheus_client.openmetrics import exposition as openmetrics_exposition
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as openmetrics_families,
)
from prometheus_client.parser import text_string_to_metric_families as text_families

ENGINE = re.compile(r"0*([0-9]{1,9})\Z")


def number(value):
    """Make NaN comparable."""
    return "NaN" if math.isnan(value) else value


def named(name, labels):
    """Name a sample as the evidence does, from the oracle's labels; written independently."""
    labels = dict(labels)
    edge = None
    for label in ("le", "quantile"):
        if edge is None and label in labels:
            try:
                edge = float(labels[label])
            except ValueError:
                continue
            if math.isnan(edge):
                edge = None
            else:
                del labels[label]
    engine = labels.pop("engine", None) or labels.get("engine_index") or None
    labels.pop("engine_index", None)
    if engine is not None and ENGINE.match(engine):
        engine = ENGINE.match(engine)[1]
    instance = labels.pop("instance", None) or labels.get("pod") or None
    return (name, instance, engine, json.dumps(labels, sort_keys=True), edge)


def oracle(families):
    return Counter(
        (*named(sample.name, sample.labels), number(sample.value))
        for family in families
        for sample in family.samples
    )


@pytest.fixture
def ours(rows):
    def _ours(parsed):
        return Counter(
            (
                row["metric"],
                row["instance"],
                row["engine"],
                json.dumps(row["labels"], sort_keys=True),
                row["edge"],
                number(row["value"]),
            )
            for row in rows(parsed)
        )

    return _ours


def test_every_recorded_scrape_gives_the_oracles_samples(scrapes, read, ours):
    assert len(scrapes) > 80
    for name, text in scrapes.items():
        parsed = read(text, name.rpartition("--")[2])
        assert parsed.coverage.format == "prometheus-text", name
        assert ours(parsed) == oracle(text_families(text.decode())), name
        assert parsed.coverage.damaged == parsed.coverage.unknown == 0, name


def test_every_recorded_scrape_as_openmetrics_gives_the_oracles_samples(scrapes, read, ours):
    for name, text in list(scrapes.items())[::8]:
        registry = CollectorRegistry()
        registry.register(Fixed(_openmetrics_families(text.decode())))
        exposed = openmetrics_exposition.generate_latest(registry, openmetrics_exposition.ALLOWUTF8)
        parsed = read(exposed)
        assert ours(parsed) == oracle(openmetrics_families(exposed.decode())), name
        assert parsed.coverage.damaged == 0, name


def _openmetrics_families(text):
    """Regroup the families of a text exposition so that OpenMetrics can say them."""
    for family in text_families(text):
        kept = [sample for sample in family.samples if not sample.name.endswith("_created")]
        if kept and family.name.endswith("_info"):
            continue  # a gauge of that name is no valid family there
        if kept:
            copy = Metric(family.name, family.documentation or "x", family.type)
            copy.samples = kept
            yield copy


class Fixed:
    """A collector of given families."""

    def __init__(self, families):
        self._families = list(families)

    def collect(self):
        return self._families


@pytest.mark.parametrize("line", range(0, 400, 37))
def test_one_damaged_line_costs_that_line_only(scrapes, read, ours, line):
    name, text = next((n, t) for n, t in scrapes.items() if len(t) > 40_000)
    lines = text.decode().splitlines(keepends=True)
    at = [index for index, one in enumerate(lines) if not one.startswith("#")][line % 300]
    broken = [*lines]
    broken[at] = broken[at][: len(broken[at]) // 2] + "\n"
    damaged = "".join(broken)
    whole = "".join(lines[:at] + lines[at + 1 :])
    with pytest.raises(ValueError):
        list(text_families(damaged))
    parsed = read(damaged)
    assert ours(parsed) == oracle(text_families(whole)), name
    assert parsed.coverage.damaged == 1
    assert damaged.encode()[parsed.damages[0].offset :].startswith(broken[at].encode())


values = st.floats(allow_nan=True, allow_infinity=True) | st.integers(-(10**9), 10**15).map(float)
label_names = st.sampled_from(
    ["model_name", "engine", "instance", "pod", "job", "finished_reason", "source", "version"]
)
label_values = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=12).filter(
    lambda text: "\r" not in text and not text.isspace()
)
label_sets = st.lists(
    st.dictionaries(label_names, label_values, max_size=4),
    min_size=1,
    max_size=5,
    unique_by=lambda labels: json.dumps(labels, sort_keys=True),
)
stamps = st.none() | st.integers(1_500_000_000, 1_900_000_000).map(float)


@st.composite
def families(draw):
    found = []
    for name in draw(
        st.lists(
            st.sampled_from(
                ["vllm:num_requests_running", "vllm:prompt_tokens_total", "up", "a_b:c"]
            ),
            min_size=1,
            unique=True,
        )
    ):
        kind = draw(st.sampled_from(["gauge", "counter", "histogram"]))
        sets = draw(label_sets)
        names = sorted({label for labels in sets for label in labels})
        distinct = {tuple(labels.get(label, "") for label in names): None for labels in sets}
        stamp = draw(stamps)
        if kind == "gauge":
            family = GaugeMetricFamily(name, "x", labels=names)
            for row in distinct:
                family.add_metric(row, draw(values), timestamp=stamp)
        elif kind == "counter":
            family = CounterMetricFamily(name, "x", labels=names)
            for row in distinct:
                family.add_metric(row, draw(st.floats(0, 1e15)), timestamp=stamp)
        else:
            family = HistogramMetricFamily(name, "x", labels=names)
            for row in distinct:
                counts = sorted(draw(st.lists(st.integers(0, 10**6), min_size=3, max_size=3)))
                buckets = list(zip(["0.5", "1.0", "+Inf"], map(float, counts), strict=True))
                family.add_metric(row, buckets, draw(st.floats(0, 1e9)), timestamp=stamp)
        found.append(family)
    return found


quick = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@quick
@given(families())
def test_generated_text_gives_the_oracles_samples(read, ours, found):
    registry = CollectorRegistry()
    registry.register(Fixed(found))
    exposed = generate_latest(registry)
    parsed = read(exposed, format="prometheus-text")
    assert ours(parsed) == oracle(text_families(exposed.decode()))
    assert parsed.coverage.damaged == 0


@quick
@given(families())
def test_generated_openmetrics_gives_the_oracles_samples(read, ours, found):
    registry = CollectorRegistry()
    registry.register(Fixed(found))
    exposed = openmetrics_exposition.generate_latest(registry, openmetrics_exposition.ALLOWUTF8)
    parsed = read(exposed, format="prometheus-text")
    assert ours(parsed) == oracle(openmetrics_families(exposed.decode()))
    stamped = [
        sample.timestamp for family in found for sample in family.samples if sample.timestamp
    ]
    for stamp in stamped:
        assert stamp in parsed.samples["stamp"].to_list()


def test_exemplars_are_not_taken_for_values(read, rows):
    text = (
        "# TYPE t histogram\n"
        't_bucket{le="0.5"} 3 1795973250.5 # {trace_id="a b"} 0.3 1795973249.1\n'
        't_bucket{le="+Inf"} 4 # {trace_id="c"} 0.9\n'
        "# EOF\n"
    )
    found = {(row["edge"], row["value"], row["stamp"]) for row in rows(read(text))}
    assert found == {(0.5, 3.0, 1795973250.5), (math.inf, 4.0, 1795973250.0)}
