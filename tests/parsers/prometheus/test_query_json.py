"""Answers of the HTTP API in every dress: the same rows."""

import json

import pytest

from forensics.errors import InputError

LABELS = {
    "__name__": "vllm:num_requests_running",
    "engine": "0",
    "instance": "10.0.0.1:8000",
    "job": "vllm",
    "model_name": 'a "quoted", {odd} [name]\\',
}


def matrix(*series):
    return {"status": "success", "data": {"resultType": "matrix", "result": list(series)}}


def series(values, **labels):
    return {"metric": {**LABELS, **labels}, "values": [[t, v] for t, v in values]}


DOCUMENT = matrix(
    series([(1776303540.053, "8"), (1776303555.053, "0.25"), (1776303570, "1e+06")]),
    series([(1776303540.053, "NaN"), (1776303555.053, "+Inf"), (1776303570, "-Inf")], engine="1"),
    series([], engine="2"),
    series([(1776303540.053, "5")], __name__="vllm:cache_config_info", num_gpu_blocks="860"),
)
EXPECTED = [
    ("0", "vllm:num_requests_running", 1776303540.053, "8.0"),
    ("0", "vllm:num_requests_running", 1776303555.053, "0.25"),
    ("0", "vllm:num_requests_running", 1776303570.0, "1000000.0"),
    ("1", "vllm:num_requests_running", 1776303540.053, "nan"),
    ("1", "vllm:num_requests_running", 1776303555.053, "inf"),
    ("1", "vllm:num_requests_running", 1776303570.0, "-inf"),
    ("0", "vllm:cache_config_info", 1776303540.053, "5.0"),
]


def compact(document):
    return json.dumps(document, separators=(",", ":"))


def short(rows, parsed):
    return [(r["engine"], r["metric"], r["stamp"], repr(r["value"])) for r in rows(parsed)]


def backwards(node):
    """Turn the order of all keys around: points before labels."""
    if isinstance(node, dict):
        return {key: backwards(value) for key, value in reversed(node.items())}
    return [backwards(item) for item in node] if isinstance(node, list) else node


PROMPT = "$ curl -s 'http://p:9090/api/v1/query_range?query={__name__=~\"vllm:.+\"}'\n"
PROGRESS = (
    "  % Total    % Received % Xferd  Average Speed   Time    Time     Time  Current\n"
    "100  512k  100  512k    0     0  1024k      0 --:--:-- --:--:-- --:--:-- 1024k\n"
)
DRESSES = {
    "compact": compact(DOCUMENT),
    "python spacing": json.dumps(DOCUMENT),
    "pretty": json.dumps(DOCUMENT, indent=2),
    "tabs and CRLF": json.dumps(DOCUMENT, indent="\t").replace("\n", "\r\n"),
    "keys sorted": json.dumps(DOCUMENT, indent=2, sort_keys=True),
    "keys backwards": compact(backwards(DOCUMENT)),
    "keys backwards, pretty, below a prompt": PROMPT + json.dumps(backwards(DOCUMENT), indent=1),
    "data only": compact(DOCUMENT["data"]),
    "result only": compact(DOCUMENT["data"]["result"]),
    "series per line": "\n".join(map(compact, DOCUMENT["data"]["result"])),
    "answer per line": "\n".join(compact(matrix(one)) for one in DOCUMENT["data"]["result"]),
    "concatenated": "".join(compact(matrix(one)) for one in DOCUMENT["data"]["result"]),
    "below a prompt": PROMPT + PROGRESS + compact(DOCUMENT) + "\n$ \n",
    "with warnings": compact({**DOCUMENT, "warnings": ['partial ["data"]'], "infos": []}),
    "array of answers": compact([DOCUMENT]),
}


@pytest.mark.parametrize("dress", DRESSES)
def test_the_same_rows_in_every_dress(read, rows, dress):
    parsed = read(DRESSES[dress])
    assert parsed.coverage.format == "prometheus-api"
    assert sorted(short(rows, parsed)) == sorted(EXPECTED)
    assert parsed.coverage.damaged == 0
    first = rows(parsed)[0]
    assert first["labels"] == {"job": "vllm", "model_name": LABELS["model_name"]}
    assert first["instance"] == "10.0.0.1:8000"
    assert parsed.facts.filter(key="cache_config.num_gpu_blocks")["value"].to_list() == ["860"]


@pytest.mark.parametrize("dress", DRESSES)
@pytest.mark.parametrize("size", [1, 5, 33, 200])
def test_cutting_the_stream_anywhere_gives_the_same_rows(read, rows, monkeypatch, dress, size):
    whole = read(DRESSES[dress])
    monkeypatch.setattr("parsers.prometheus.matrix_scan.BLOCK_BYTES", size)
    cut = read(DRESSES[dress])
    assert short(rows, cut) == short(rows, whole)
    assert cut.series["offset"].to_list() == whole.series["offset"].to_list()
    assert cut.coverage.damaged == 0


def test_a_document_cut_anywhere_keeps_the_points_before_the_cut(read, rows):
    text = compact(DOCUMENT)
    last = text.rindex('"]]')
    for end in range(text.index('"metric"') + 8, len(text)):
        parsed = read(text[:end], format="prometheus-api")
        found = short(rows, parsed)
        complete = text[:end].count('"]')  # every pair ends like this, and nothing else does
        assert found == EXPECTED[:complete], end
        inside = text.rfind("[[", 0, end) > text.rfind("]]", 0, end)
        if inside and end <= last + 2:
            assert parsed.coverage.damaged == 1, end


def test_damaged_points_are_counted_and_located_and_the_rest_kept(read, rows):
    text = compact(DOCUMENT).replace('[1776303555.053,"0.25"]', '[1776303555.053,"0.2x5"]')
    parsed = read(text)
    assert [v for *_, v in short(rows, parsed)] == [v for *_, v in EXPECTED if v != "0.25"]
    assert parsed.coverage.damaged == 1
    assert text[parsed.damages[0].offset :].startswith(',[1776303555.053,"0.2x5"]')
    assert parsed.damages[0].reason == "expected [time, value] pairs"
    with pytest.raises(InputError, match="expected \\[time, value\\] pairs"):
        read(text, strict=True)


def test_a_series_cut_off_before_the_next_one(read, rows):
    text = compact(DOCUMENT).replace(',[1776303570,"1e+06"]]},{', ",[177630{")
    parsed = read(text)
    assert len(short(rows, parsed)) == len(EXPECTED) - 1


def test_vector(read, rows):
    vector = {
        "status": "success",
        "data": {
            "resultType": "vector",
            "result": [{"metric": LABELS, "value": [1795974927.647, "1"]}],
        },
    }
    for text in (compact(vector), json.dumps(vector, indent=2)):
        assert short(rows, read(text)) == [
            ("0", "vllm:num_requests_running", 1795974927.647, "1.0")
        ]


def test_scalar_has_no_name_and_the_note_says_so(read, rows):
    text = '{"status":"success","data":{"resultType":"scalar","result":[1704067200,"5"]}}'
    parsed = read(text)
    assert short(rows, parsed) == [(None, "", 1704067200.0, "5.0")]
    assert "without a metric name" in parsed.coverage.note


def test_an_error_is_told(read):
    text = '{"status":"error","errorType":"bad_data","error":"exceeded maximum resolution"}'
    parsed = read(text)
    assert parsed.series.is_empty()
    assert parsed.coverage.note == (
        "the server answered with an error instead of data: exceeded maximum resolution"
    )


def test_an_answer_without_series_is_told(read):
    parsed = read(compact(matrix()))
    assert parsed.coverage.note.startswith("the answer holds no series")


def test_a_log_line_that_speaks_of_an_error_is_not_an_answer(recognise):
    assert recognise('{"status":"error","msg":"request failed","error":"boom"}\n') is None


def test_native_histograms_become_cumulative_buckets(read, rows):
    labels = {**LABELS, "__name__": "vllm:time_to_first_token_seconds"}
    histograms = [
        [
            10,
            {"count": "3", "sum": "2.5", "buckets": [[0, "0.25", "0.5", "1"], [0, "1", "2", "2"]]},
        ],
        [20, {"count": "9", "sum": "7", "buckets": [[0, "0.25", "1", "4"], [0, "1", "2", "5"]]}],
    ]
    for key, value in (("histograms", histograms), ("histogram", histograms[0])):
        found = rows(read(compact(matrix({"metric": labels, key: value}))))
        base = "vllm:time_to_first_token_seconds"
        buckets = [(r["edge"], r["stamp"], r["value"]) for r in found if r["edge"] is not None]
        if key == "histogram":
            assert buckets == [(0.5, 10, 1), (2.0, 10, 3), (float("inf"), 10, 3)]
            continue
        assert buckets == [
            (0.5, 10, 1),  # at 20 a bucket straddles 0.5: not known
            (1.0, 10, 1),
            (1.0, 20, 4),
            (2.0, 10, 3),
            (2.0, 20, 9),
            (float("inf"), 10, 3),
            (float("inf"), 20, 9),
        ]
        rest = [(r["metric"], r["stamp"], r["value"]) for r in found if r["edge"] is None]
        assert rest == [
            (f"{base}_sum", 10, 2.5),
            (f"{base}_sum", 20, 7.0),
            (f"{base}_count", 10, 3.0),
            (f"{base}_count", 20, 9.0),
        ]


@pytest.mark.parametrize("size", [1, 9, 100, 1 << 20])
def test_floats_and_native_histograms_in_one_series(read, rows, monkeypatch, size):
    monkeypatch.setattr("parsers.prometheus.matrix_scan.BLOCK_BYTES", size)
    item = {
        "metric": {**LABELS, "__name__": "vllm:time_to_first_token_seconds"},
        "values": [[5, "1"]],
        "histograms": [[10, {"count": "3", "sum": "2", "buckets": []}]],
    }
    found = [(r["metric"], r["stamp"], r["value"]) for r in rows(read(compact(matrix(item))))]
    assert sorted(found) == [
        ("vllm:time_to_first_token_seconds", 5.0, 1.0),
        ("vllm:time_to_first_token_seconds_bucket", 10.0, 3.0),
        ("vllm:time_to_first_token_seconds_count", 10.0, 3.0),
        ("vllm:time_to_first_token_seconds_sum", 10.0, 2.0),
    ]


@pytest.mark.parametrize("bracket", ['{"metric":', "[", '{"a":[', '"metric":{'])
def test_deep_nesting_is_bounded(read, bracket):
    parsed = read('"resultType":"matrix"' + bracket * 100_000, format="prometheus-api")
    assert parsed.samples.is_empty()
    shuffled = '{"values":[[1,"2"]],"metric":{"__name__":"up"}}' + bracket * 100_000
    assert read(shuffled, format="prometheus-api").coverage.format == "prometheus-api"


@pytest.mark.parametrize("filler", [b"a", b'"', b"{", b'\\"', b'"a":"b",'])
def test_labels_without_an_end_are_bounded(read, filler, monkeypatch):
    monkeypatch.setattr("parsers.prometheus.matrix_scan.MAX_ARRAY_BYTES", 3 << 20)
    text = b'{"resultType":"matrix","result":[{"metric":{"a":"b",' + filler * (8 << 20)
    parsed = read(text + compact(DOCUMENT).encode(), format="prometheus-api")
    assert parsed.coverage.damaged >= 1
    assert parsed.coverage.samples == len(EXPECTED)


def test_every_answer_of_the_recording(read, restart):
    samples = 0
    for path in sorted((restart / "query_range").iterdir()):
        parsed = read(path.read_bytes())
        document = json.loads(path.read_bytes())
        result = document["data"]["result"]
        assert parsed.coverage.samples == sum(len(one["values"]) for one in result)
        assert parsed.series.height == len(result)
        stamps = [float(t) for one in result for t, _ in one["values"]]
        values = [float(v) for one in result for _, v in one["values"]]
        assert parsed.samples["stamp"].to_list() == stamps
        assert parsed.samples["value"].to_list() == values
        samples += parsed.coverage.samples
    assert samples > 20_000
