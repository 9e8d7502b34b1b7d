import numpy as np

from forensics.timeline.recordings import read_tracks

HITS = "vllm:prefix_cache_hits_total"
USAGE = "vllm:kv_cache_usage_perc"


def tracks(evidence):
    return {
        (track.metric, *sorted(track.labels.items())): track
        for track in read_tracks(evidence, evidence.series)
    }


def test_chunks_of_one_range_are_joined(evidence_of):
    evidence = evidence_of(
        [
            (HITS, {"file": 2}, [(30.0, 3.0), (45.0, 4.0)]),
            (HITS, {"file": 1}, [(0.0, 1.0), (15.0, 2.0), (30.0, 3.0)]),
        ],
        sources=(("a", "a"), ("m/1.json", "m"), ("m/2.json", "m")),
    )
    (track,) = tracks(evidence).values()
    assert track.times.tolist() == [0.0, 15.0, 30.0, 45.0]
    assert track.values.tolist() == [1.0, 2.0, 3.0, 4.0]


def test_lagging_twin_is_not_mixed_in(evidence_of):
    """A range query answers with the last sample before each step: it lags behind raw scrapes.

    Mixed, 100 (raw, at 10 s) would be followed by 90 (query, at 11 s): a reset that never was.
    """
    raw = [(float(second), 10.0 * second) for second in range(0, 100, 10)]
    query = [(second + 1.0, 10.0 * max(0, second - 9)) for second in range(0, 100, 30)]
    evidence = evidence_of(
        [(HITS, {"file": 1}, raw), (HITS, {"file": 2, "instance": "a:8000"}, query)],
        sources=(("a", "a"), ("m/raw.prom", "m"), ("m/query.json", "m")),
        formats=["vllm_log", "prometheus_text", "query_json"],
    )
    (track,) = tracks(evidence).values()
    assert track.times.tolist() == [at for at, _ in raw]
    assert (np.diff(track.values) >= 0).all()


def test_other_recording_completes_what_the_first_does_not_have(evidence_of):
    long = [(float(second), 1.0) for second in range(100, 200, 10)]
    evidence = evidence_of(
        [
            (HITS, {"file": 1, "instance": "a:8000"}, long),
            (HITS, {"file": 2}, [(50.0, 0.5), (95.0, 0.9), (150.0, 9.0)]),
            (USAGE, {"file": 2}, [(50.0, 0.3), (150.0, 0.4)]),
        ],
        sources=(("a", "a"), ("m/query.json", "m"), ("m/raw.prom", "m")),
        formats=["vllm_log", "query_json", "prometheus_text"],
    )
    found = tracks(evidence)
    # Only what lies well outside: 95 s is within a step of the beginning.
    assert found[HITS,].times.tolist() == [50.0, *(at for at, _ in long)]
    assert found[USAGE,].values.tolist() == [0.3, 0.4]


def test_labels_of_place_do_not_tell_series_apart(evidence_of):
    evidence = evidence_of(
        [
            (HITS, {"job": "a", "model_name": "m"}, [(0.0, 1.0)]),
            (HITS, {"job": "b", "model_name": "m"}, [(15.0, 2.0)]),
        ]
    )
    (track,) = tracks(evidence).values()
    assert track.values.tolist() == [1.0, 2.0]


def test_rewritten_names_count_as_the_same(evidence_of):
    evidence = evidence_of([("vllm_prefix_cache_hits_total", {}, [(0.0, 1.0)])])
    (track,) = tracks(evidence).values()
    assert track.metric == HITS
    assert track.exposed == "vllm_prefix_cache_hits_total"


def test_values_that_are_no_numbers_are_left_out(evidence_of):
    evidence = evidence_of([(USAGE, {}, [(0.0, 0.1), (15.0, float("nan")), (30.0, 0.2)])])
    (track,) = tracks(evidence).values()
    assert track.times.tolist() == [0.0, 30.0]


def test_nothing_gives_nothing(evidence_of):
    evidence = evidence_of()
    assert read_tracks(evidence, evidence.series) == []
