"""Places of PromQL nodes and mistakes."""

import promql_parser
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forensics.runbooks.promql.errors import locate
from forensics.runbooks.promql.nodes import Aggregate, Binary, Call, Selector, nodes, selectors
from forensics.runbooks.promql.placeholders import fill
from forensics.runbooks.promql.tree import parse

names = st.sampled_from(["vllm:num_requests_running", "vllm:prompt_tokens_total", "up", "a_b"])
labels = st.sampled_from(["", "{}", '{a="b"}', '{a="}", b=~"x.*"}', "{a='[5m]',}"])
ranges = st.sampled_from(["[5m]", "[1h30m]", "[ 15s ]"])
offsets = st.sampled_from(["", " offset 5m", " offset -1h", " @ end()", " @ 1600000000"])
instant = st.builds("{}{}{}".format, names, labels, offsets)
matrix = st.builds("{}{}{}{}".format, names, labels, ranges, offsets)


def grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    groups = st.sampled_from(["", "by (a, b) ", "without (engine) ", "BY () "])
    return st.one_of(
        st.builds("rate({})".format, matrix),
        st.builds("sum {}({})".format, groups, inner),
        st.builds("max({}) {}".format, inner, groups),
        st.builds("topk {}(3, {})".format, groups, inner),
        st.builds("({})".format, inner),
        st.builds("-{}".format, inner),
        st.builds("clamp_min({}, 1)".format, inner),
        st.builds("max_over_time({}[1h:5m])".format, inner),
        st.builds("{} * 100".format, inner),
        st.builds("{} / on (a) group_left (b) {}".format, inner, inner),
        st.builds("{} > bool {}".format, inner, inner),
        st.builds("{} and ignoring (x) {} # why\n".format, inner, inner),
        st.builds("{}\n  or\n{}".format, inner, inner),
    )


expressions = st.recursive(instant, grown, max_leaves=6)


@given(expressions)
def test_every_node_has_its_place(text: str) -> None:
    try:
        promql_parser.parse(text)
    except ValueError:
        return
    root = parse(text)
    for node in nodes(root):
        assert root.start <= node.start < node.end <= root.end
        for child in node.children:
            assert node.start <= child.start and child.end <= node.end
        promql_parser.parse(text[node.start : node.end])
    for selector in selectors(root):
        assert text[selector.name_start : selector.name_end] == selector.metric


@given(st.text(alphabet="abv:_l(){}[]5m\"'=~!<>+-*/%,. \n$#@", max_size=60))
def test_any_text_is_parsed_or_located(text: str) -> None:
    filled = fill(text)
    assert len(filled.text) == len(text)
    try:
        parse(filled.text)
    except ValueError as error:
        fault = locate(filled.text, str(error))
        assert 0 <= fault.start <= fault.end
    except Exception as error:
        assert type(error).__name__ == "PlacesLostError"


def test_parts_of_an_expression() -> None:
    text = 'sum by (le) (rate(vllm:prompt_tokens_total{a="b"}[5m] offset 1h)) / 2 > 0.5'
    root = parse(text)
    assert isinstance(root, Binary) and root.operator == ">"
    (selector,) = selectors(root)
    assert selector.range_s == 300.0 and selector.labels == ("a",)
    assert text[selector.range_start : selector.range_end] == "5m"
    kinds = [type(node) for node in nodes(root)][:5]
    assert kinds == [Binary, Binary, Aggregate, Call, Selector]


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("rate(vllm:foo[5m]) / / 2", "/"),
        ("sum(rate(x[5m])) by (instance) > 90 foo", "foo"),
        ("x[5m", "["),
        ("rate(x[5m]))", ")"),
        ("sumo(x)", "sumo"),
        ("x >", ">"),
        ("x && y", "&"),
        ("sum(x) by instance", "by instance"),
    ],
)
def test_place_of_a_mistake(text: str, at: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse(text)
    fault = locate(text, str(caught.value))
    assert text[fault.start : fault.end] == at


@pytest.mark.parametrize(
    "text",
    [
        "rate(x[$__rate_interval]) > $limit",
        "sum by ($group) (rate($metric[${minutes}m]))",
        "histogram_quantile($q, rate(x_bucket[$__interval:$step]))",
        'x{pod=~"$pod"} and y[[suffix]] > 1',
        "rate(x[<window>])",
        "rate(x[{{ .Values.window }}])",
        "topk($n, x)",
    ],
)
def test_variables(text: str) -> None:
    parse(fill(text).text)
