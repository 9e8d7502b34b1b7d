"""Documents taken apart: what is found, and that every piece knows its place."""

import json

import yaml
from hypothesis import given
from hypothesis import strategies as st

from forensics.runbooks.documents import json_nodes, yaml_nodes
from forensics.runbooks.documents.nodes import leaves
from forensics.runbooks.documents.reading import read
from forensics.runbooks.interface import Document
from forensics.runbooks.settings import Settings
from forensics.runbooks.text import Mapped


def document(path: str, text: str) -> Document:
    return read(path, text, Settings(), frozenset(), stated_version=None)[0]


def queries(path: str, text: str) -> list[tuple[str, str]]:
    found = document(path, text)
    for query in found.queries:
        start, end = query.source.span
        assert (
            text[start:end].split()[0].strip("\\'\"").startswith(query.source.text.split()[0][:3])
        )
    return [(query.source.text, query.role) for query in found.queries]


def test_markdown_finds_queries_everywhere() -> None:
    text = """# T
Usage is `vllm:kv_cache_usage_perc`, and vllm:num_requests_waiting in text.

> - quoted list
>   ```promql
>   # why
>   sum(vllm:num_requests_running)
>
>   max(
>     vllm:kv_cache_usage_perc
>   )
>   ```

| a | b |
|---|---|
| `rate(vllm:prompt_tokens_total[5m])` | x |

    vllm:num_requests_running > 3

```
vllm:num_requests_waiting > 10
```

```python
x = "vllm:not_looked_at"
```
"""
    assert queries("a.md", text) == [
        ("vllm:kv_cache_usage_perc", "mention"),
        ("vllm:num_requests_waiting", "mention"),
        ("sum(vllm:num_requests_running)", "text"),
        ("max(\n  vllm:kv_cache_usage_perc\n)", "text"),
        ("rate(vllm:prompt_tokens_total[5m])", "text"),
        ("vllm:num_requests_running > 3", "text"),
        ("vllm:num_requests_waiting > 10", "text"),
    ]


def test_unclosed_fence_ends_at_a_blank_line() -> None:
    text = "```promql\nvllm:num_requests_running > 1\n\nThen see `vllm:num_requests_waiting`.\n"
    assert queries("a.md", text) == [
        ("vllm:num_requests_running > 1", "text"),
        ("vllm:num_requests_waiting", "mention"),
    ]


def test_windows_line_ends() -> None:
    text = "```promql\r\nmax(vllm:kv_cache_usage_perc)\r\n```\r\n"
    assert queries("a.md", text) == [("max(vllm:kv_cache_usage_perc)", "text")]
    assert queries("r.yaml", "a:\r\n  expr: |\r\n    max(\r\n      vllm:x_y)\r\n")[0][1] == "panel"


def test_rule_files_and_manifests() -> None:
    text = """
kind: ConfigMap
data:
  dashboard.json: |
    {"panels": [{"targets": [{"expr": "max(vllm:kv_cache_usage_perc{a=\\"b\\"})"}]}],
     "templating": {"list": [{"query": "label_values(vllm:num_requests_running, model_name)"}]}}
---
groups:
- rules:
  - {alert: A, expr: 'vllm:num_requests_waiting > 1'}
  - record: vllm:x:y
    expr: >-
      sum(
        vllm:num_requests_running)
"""
    assert queries("a.yaml", text) == [
        ('max(vllm:kv_cache_usage_perc{a="b"})', "panel"),
        ("vllm:num_requests_running", "mention"),
        ("vllm:num_requests_waiting > 1", "alert"),
        ("sum(\n  vllm:num_requests_running)", "record"),
    ]


def test_queries_in_commands() -> None:
    text = (
        "curl -G http://p/api/v1/query --data-urlencode 'query=max(vllm:kv_cache_usage_perc)'\n"
        "curl 'http://p/api/v1/query?query=vllm:num_requests_waiting&time=1'\n"
        "promtool query instant http://p 'sum(vllm:num_requests_running)'\n"
    )
    assert [query for query, _ in queries("a.sh", text)] == [
        "max(vllm:kv_cache_usage_perc)",
        "vllm:num_requests_waiting",
        "sum(vllm:num_requests_running)",
    ]


def test_front_matter_and_comments_state_the_deployment() -> None:
    text = """---
title: x
engine: hugo
forensics:
  vllm-version: ">=0.9,<0.11"
  scrape-interval: 1m
---
<!-- forensics: gpu="A100 80GB" context=4096 -->
vllm
"""
    found = document("a.md", text)
    assert found.unread == ()
    assert [str(found.target.releases[0]), str(found.target.releases[-1])] == ["0.9.0", "0.10.2"]
    assert (found.stated.gpu, found.stated.context) == ("A100 80GB", 4096)
    assert found.scrape_interval_s == 60.0


scalars = st.text(
    alphabet=st.sampled_from("ab:{}[]|>#-'\"\\ \n\té캐é—,&*!%@"), max_size=40
) | st.text(max_size=20)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(scalars, inner, max_size=3)
)


@given(values, st.sampled_from([None, "'", '"', "|", ">"]), st.integers(2, 6), st.integers(20, 80))
def test_yaml_scalars_are_laid_over_their_source(
    value: object, style: str | None, indent: int, width: int
) -> None:
    text = yaml.safe_dump(
        value, default_style=style, indent=indent, width=width, allow_unicode=True
    )
    try:
        documents = yaml_nodes.load(Mapped.plain(text, 0))
    except yaml_nodes.YamlFaultError:
        return
    for leaf in (leaf for node in documents for leaf in leaves(node)):
        piece = leaf.text
        assert len(piece.offsets) == len(piece.text) + 1
        assert list(piece.offsets) == sorted(piece.offsets)
        if "\\" in text:
            continue  # escapes: a character is where its escape begins
        for char, offset in zip(piece.text, piece.offsets, strict=False):
            if not char.isspace():
                assert text[offset] == char


@given(values, st.sampled_from([None, 2]), st.booleans())
def test_json_strings_are_laid_over_their_source(
    value: object, indent: int | None, ascii_only: bool
) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    node = json_nodes.load(Mapped.plain(text, 0))
    for leaf in leaves(node):
        piece = leaf.text
        assert len(piece.offsets) == len(piece.text) + 1
        for char, offset in zip(piece.text, piece.offsets, strict=False):
            assert text[offset] in (char, "\\")


@given(st.text(max_size=200), st.sampled_from(["a.md", "a.sh", "a.yaml", "a.json"]))
def test_any_text_is_read(text: str, path: str) -> None:
    document(path, f"vllm {text}")
    document(path, f"{text}\nvllm:\n```\n{text}")


def test_depth_is_bounded() -> None:
    assert document("a.json", '{"vllm":' + "[" * 5000).unread
    assert document("a.yaml", "vllm: " + "[" * 5000).unread
    assert document("a.yaml", "vllm: " + "[" * 300 + "]" * 300).unread
