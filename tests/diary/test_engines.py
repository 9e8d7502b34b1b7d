"""Which rows speak of the same scheduler, whatever file they came from."""

from forensics.diary.engines import map_engines

RUNNING = "vllm:num_requests_running"
AT = [(0.0, 1.0), (10.0, 2.0)]


def stats(at, **columns):
    return (at, "stats_periodic", {"running": 1}, columns)


def names(evidence):
    return [key.name for key in map_engines(evidence).keys]


def test_one_log_and_one_dump_are_one_engine(evidence_of):
    evidence = evidence_of([(RUNNING, {"instance": "10.0.0.7:8000"}, AT)], [stats(0.0)])
    (key,) = map_engines(evidence).keys
    assert key.name == "0"
    assert key.instances == (None, "10.0.0.7:8000") or key.instances == ("10.0.0.7:8000",)
    assert key.streams == ("server.log",)


def test_data_parallel_ranks_of_one_server(evidence_of):
    series = [(RUNNING, {"instance": "a:8000", "engine": str(rank)}, AT) for rank in (10, 2, 0, 1)]
    assert names(evidence_of(series)) == ["0", "1", "2", "10"]


def test_rows_without_a_rank_belong_to_every_rank(evidence_of):
    evidence = evidence_of(
        [
            (RUNNING, {"engine": "0"}, AT),
            (RUNNING, {"engine": "1"}, AT),
            ("process_start_time_seconds", {}, [(0.0, 5.0)]),
        ]
    )
    engines = map_engines(evidence)
    for key in engines.keys:
        mine = engines.of_series(evidence, key)
        assert sorted(mine["metric"]) == ["process_start_time_seconds", RUNNING]
        assert mine["engine"].drop_nulls().to_list() == [key.rank]


def test_ranks_in_one_log(evidence_of):
    events = [stats(0.0, engine="0"), stats(0.0, engine="1"), (1.0, "process_start", {})]
    evidence = evidence_of(events=events)
    engines = map_engines(evidence)
    assert [key.name for key in engines.keys] == ["0", "1"]
    for key in engines.keys:
        mine = engines.of_rows(evidence, evidence.events, key)
        assert sorted(mine["kind"]) == ["process_start", "stats_periodic"]


def test_replicas_in_metrics_are_kept_apart(evidence_of):
    evidence = evidence_of(
        [(RUNNING, {"instance": "a:8000"}, AT), (RUNNING, {"instance": "b:8000"}, AT)]
    )
    engines = map_engines(evidence)
    assert [key.name for key in engines.keys] == ["a:8000", "b:8000"]
    for key in engines.keys:
        assert engines.of_series(evidence, key)["instance"].to_list() == [key.server]


def test_replicas_with_ranks_are_named_by_both(evidence_of):
    evidence = evidence_of(
        [
            (RUNNING, {"instance": instance, "engine": rank}, AT)
            for instance in ("a:8000", "b:8000")
            for rank in ("0", "1")
        ]
    )
    assert names(evidence) == ["a:8000/0", "a:8000/1", "b:8000/0", "b:8000/1"]


def test_pods_in_one_stream_are_several_servers(evidence_of):
    events = [stats(float(at), instance=pod) for pod in ("vllm-0", "vllm-1") for at in (0, 10)]
    evidence = evidence_of(events=events)
    engines = map_engines(evidence)
    assert [key.name for key in engines.keys] == ["vllm-0", "vllm-1"]
    for key in engines.keys:
        mine = engines.of_rows(evidence, evidence.events, key)
        assert set(mine["instance"]) == {key.server}


def test_pod_of_the_log_finds_its_metrics(evidence_of):
    evidence = evidence_of(
        [(RUNNING, {"instance": "vllm-0"}, AT), (RUNNING, {"instance": "vllm-1"}, AT)],
        [stats(0.0, instance="vllm-1"), stats(10.0, instance="vllm-1")],
    )
    first, second = map_engines(evidence).keys
    assert first.streams == ()
    assert second.streams == ("server.log",)


def test_log_is_given_to_the_host_in_its_path(evidence_of):
    evidence = evidence_of(
        [(RUNNING, {"instance": "gpu-a:8000"}, AT), (RUNNING, {"instance": "gpu-b:8000"}, AT)],
        [stats(0.0, source=0), stats(0.0, source=1)],
        sources=(("gpu-b.log", "gpu-b.log"), ("gpu-a.log", "gpu-a.log"), ("m.json", "m.json")),
    )
    found = {key.server: key.streams for key in map_engines(evidence).keys}
    assert found == {"gpu-a:8000": ("gpu-a.log",), "gpu-b:8000": ("gpu-b.log",)}


def test_localhost_in_a_path_names_nobody(evidence_of):
    evidence = evidence_of(
        [(RUNNING, {"instance": "localhost:8000"}, AT), (RUNNING, {"instance": "gpu-b:8000"}, AT)],
        [stats(0.0), stats(10.0)],
        sources=(("localhost/server.log", "localhost/server.log"), ("m.json", "m.json")),
    )
    assert names(evidence) == ["gpu-b:8000", "localhost/server.log", "localhost:8000"]


def test_logs_that_follow_one_another_are_one_server(evidence_of):
    events = [stats(0.0), stats(10.0), stats(100.0, source=1), stats(110.0, source=1)]
    evidence = evidence_of(events=events, sources=(("a.log", "a.log"), ("b.log", "b.log")))
    (key,) = map_engines(evidence).keys
    assert key.streams == ("a.log", "b.log")


def test_logs_of_the_same_time_are_two_servers(evidence_of):
    events = [stats(0.0), stats(100.0), stats(50.0, source=1), stats(110.0, source=1)]
    evidence = evidence_of(events=events, sources=(("a.log", "a.log"), ("b.log", "b.log")))
    assert names(evidence) == ["a.log", "b.log"]


def test_raw_scrapes_beside_a_range_query_are_the_same_server(evidence_of):
    evidence = evidence_of(
        [
            (RUNNING, {"instance": "a:8000", "engine": "0"}, AT),
            (RUNNING, {"engine": "0", "file": 2}, AT),
        ],
        sources=(("s", "s"), ("q.json", "m"), ("r.prom", "m")),
    )
    (key,) = map_engines(evidence).keys
    assert map_engines(evidence).of_series(evidence, key).height == 2


def test_exporters_of_the_machine_make_no_engine(evidence_of):
    evidence = evidence_of([("up", {"instance": "a:8000"}, AT), ("DCGM_FI_DEV_FB_USED", {}, AT)])
    assert map_engines(evidence).keys == ()


def test_order_of_rows_changes_nothing(evidence_of):
    series = [
        (RUNNING, {"instance": instance, "engine": rank}, AT)
        for instance in ("a:8000", "b:8000")
        for rank in ("0", "1")
    ]
    assert names(evidence_of(series)) == names(evidence_of(series[::-1]))
