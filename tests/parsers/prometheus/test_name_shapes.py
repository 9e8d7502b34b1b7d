"""The quick way to name a series gives what the general way gives."""

from hypothesis import example, given, settings
from hypothesis import strategies as st

from parsers.prometheus.exposition_line import read_name
from parsers.prometheus.labels import series_name
from parsers.prometheus.name_shapes import NameShapes

LABELS = st.sampled_from(
    [
        "model_name",
        "engine",
        "engine_index",
        "instance",
        "pod",
        "job",
        "le",
        "quantile",
        "version",
        "ReplicaId",
        "__name__",
        "service_instance_id",
        "a.b",
        "_",
        "9",
    ]
)
VALUES = st.sampled_from(["", "0", "007", "+Inf", "0.5", "nan", "x y", "%s", "{}", ","]) | st.text(
    st.characters(codec="utf-8", exclude_characters='"\\'), max_size=6
)
PAIRS = st.lists(st.tuples(LABELS, VALUES), max_size=5)
NAMES = st.sampled_from(["vllm:e2e_request_latency_seconds_bucket", "up", "a-b", "", "9x"])
BETWEEN = st.sampled_from([",", ", ", " ,", ",,", ""])


def general(text):
    read = read_name(text)
    return series_name(read[0]) if read is not None and read[1] == len(text) else None


@settings(max_examples=500, deadline=None)
@given(NAMES, PAIRS, BETWEEN, st.sampled_from(["}", ",}", " }", "", "}x"]))
@example(
    "vllm:e2e_request_latency_seconds_bucket",
    [("le", "+Inf"), ("engine", "007"), ("model_name", "m")],
    ",",
    "}",
)
@example("", [("__name__", "up"), ("instance", "a:1")], ", ", "}")
@example("up", [("x", "\x7f\u00a0\u2028é한")], ",", "}")
@example("up", [], ",", "}")
def test_both_ways_agree(name, pairs, between, end):
    text = name + "{" + between.join(f'{label}="{value}"' for label, value in pairs) + end
    shapes = NameShapes()
    for _ in range(2):  # a shape is learned, then used
        assert shapes.named(text) == general(text)


def test_both_ways_agree_on_every_recorded_series(scrapes):
    shapes = NameShapes()
    seen = set()
    for text in scrapes.values():
        for line in text.decode().splitlines():
            if not line.startswith("#"):
                seen.add(line.rpartition(" ")[0])
    assert len(seen) > 800
    for text in seen:
        assert shapes.named(text) == general(text) is not None


def test_a_shape_takes_other_values():
    shapes = NameShapes()
    assert shapes.named('x_bucket{engine="0",le="1.0",model_name="a"}').edge == 1.0
    other = shapes.named('x_bucket{engine="01",le="+Inf",model_name="100% {b}"}')
    assert other == ("x_bucket", None, "1", '{"model_name":"100% {b}"}', float("inf"))
