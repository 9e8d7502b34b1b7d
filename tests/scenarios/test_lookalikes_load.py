"""Look-alikes of overload: a queue, a full pool or silence, and what is really behind it."""

from pathlib import Path

import pytest

from forensics.pipeline import analyze


@pytest.mark.parametrize(
    ("log", "metrics"), [(True, True), (True, False), (False, True)], ids=["both", "log", "metrics"]
)
def test_saturation_at_a_third_of_the_pool_is_bound_by_prefill(server, log, metrics) -> None:
    busy = server(flags={"max_num_batched_tokens": 8192}).always(prompt=3000, hit=0.1, requests=1)
    busy.during(400, 1201, prompt=12000, requests=1.2, running=30, waiting=40, usage=0.32,
                itl=0.5, ttft=30.0, queue=25.0, prefill=9.0)  # fmt: skip
    analysis = analyze([busy.write(log=log, metrics=metrics)])
    assert analysis.verdict.cause == "prefill-bound"


def test_a_queue_at_three_percent_is_an_admission_limit(server) -> None:
    """LoRA slots, for one: four run, a dozen wait, seats and pool are free."""
    slots = server().always(running=4, usage=0.03, requests=1.0)
    slots.during(300, 1201, waiting=12, queue=9.0, ttft=9.0)
    verdict = analyze([slots.write()]).verdict
    assert verdict.cause == "seat-limit"
    assert verdict.summary.key == "SCH301.other"


def test_nothing_runs_and_requests_wait_is_a_stall(server) -> None:
    stalled = server().during(600, 1201, requests=0, running=0, usage=0, waiting=9)
    verdict = analyze([stalled.write()]).verdict
    assert verdict.cause == "engine-stall"
    assert verdict.end is None


def test_a_log_that_ends_while_requests_wait_and_nothing_runs_is_not_healthy(server) -> None:
    """The last line says so and no more lines follow: a stall is the candidate, no verdict."""
    stalled = server().during(600, 1201, requests=0, running=0, usage=0, waiting=9)
    verdict = analyze([stalled.write(metrics=False)]).verdict
    assert verdict.cause == "insufficient-evidence"
    assert [cause for cause, _ in verdict.candidates] == ["engine-stall"]


def test_stats_lines_that_stopped(server) -> None:
    """No metrics: one line without throughput, fourteen requests on board, then only probes."""
    silent = server().during(600, 1201, requests=0, running=14, usage=0.1)
    for at in range(0, 1200, 10):
        silent.access(at + 0.5, "/health", "200 OK", "GET")
    verdict = analyze([silent.write(metrics=False, stamped=True)]).verdict
    assert verdict.cause == "engine-stall"


def test_one_request_holds_three_quarters_of_the_pool(server) -> None:
    hog = server(max_model_len=400_000).always(running=6, requests=1.5)
    hog.during(500, 800, usage=0.98, running=2, waiting=8, requests=0.4, queue=20.0, ttft=20.0)
    assert analyze([hog.write()]).verdict.cause == "long-context-hog"


def test_one_generation_runs_away(server) -> None:
    """Usage climbs for ten minutes with the same few requests, then the others queue."""
    away = server(max_model_len=400_000).always(running=4, requests=1.0, usage=0.04)
    away.during(300, 900, usage=(0.05, 0.98))
    away.during(900, 1201, usage=0.98, waiting=(1, 20), running=3, requests=0.2, queue=30.0)
    assert analyze([away.write()]).verdict.cause == "long-context-hog"


def test_eight_ranks_of_which_one_carries_the_load(server) -> None:
    for rank in range(8):
        one = server(engine=str(rank), seed=rank)
        if rank == 0:
            one.always(running=60, waiting=20, usage=0.7, requests=8, ttft=5.0, queue=4.0)
        else:
            one.always(running=1 if rank == 3 else 0, requests=0.02, usage=0.002)
        path = one.write(log=False)
    verdict = analyze([path]).verdict
    assert verdict.cause == "replica-imbalance"
    assert verdict.engine == "0"


def test_clients_that_abort_leave_a_gap_between_begun_and_ended(server) -> None:
    path = server().during(500, 800, unfinished=2.0, requests=2.0).write()
    analysis = analyze([path])
    assert analysis.verdict.cause == "client-aborts"


def test_clients_that_abort_and_a_log_that_names_them(server) -> None:
    gone = server().during(500, 800, unfinished=2.0, requests=2.0)
    for at in range(500, 800):
        gone.line(at, f"INFO [async_llm.py:700] Aborted request(s) cmpl-{at:032x}-0.")
    verdict = analyze([gone.write()]).verdict
    assert verdict.cause == "client-aborts"
    assert verdict.confidence >= 0.9


def test_refused_requests_beside_served_ones(server) -> None:
    full = server(max_num_seqs=64).during(500, 900, running=64, waiting=10, requests=8, ttft=2.0)
    for at in range(500, 900):
        full.access(at, "/v1/chat/completions", "503 Service Unavailable")
    assert analyze([full.write(stamped=True)]).verdict.cause == "overload-shedding"


def test_twice_the_requests_and_the_same_throughput(server) -> None:
    path = server().during(600, 1201, running=32, itl=0.04, ttft=0.4).write()
    assert analyze([path]).verdict.cause == "compute-plateau"


def test_requests_frozen_on_board_and_a_complaint_of_the_engine(server) -> None:
    """The gauges stand still for ten minutes; vLLM itself says that a step does not end."""
    hung = server().during(600, 1201, requests=0, running=14, usage=0.1)
    for at in range(660, 1200, 60):
        hung.line(
            at,
            "INFO [shm_broadcast.py:466] No available shared memory broadcast block found in 60 "
            "seconds. This typically happens when some processes are hanging or doing some "
            "time-consuming work (e.g. compilation, weight/kv cache quantization).",
            "EngineCore",
        )
    verdict = analyze([hung.write()]).verdict
    assert verdict.cause == "engine-stall"
    assert verdict.confidence >= 0.9


def test_a_frozen_gauge_alone_is_no_proof_of_a_stall(server) -> None:
    """Clients went away and the gauge is not updated while the engine has nothing to do."""
    frozen = server().during(600, 1201, requests=0, running=3, usage=0.02)
    verdict = analyze([frozen.write()]).verdict
    assert verdict.cause == "insufficient-evidence"
    assert verdict.missing == ("a later sample, line or answer",)


def test_a_request_leaves_no_room_for_the_next_before_the_pool_is_full(server) -> None:
    hog = server(max_model_len=400_000).always(running=6, requests=1.5)
    hog.during(500, 800, usage=0.78, running=1, waiting=4, requests=0.1, queue=20.0, ttft=20.0)
    assert analyze([hog.write()]).verdict.cause == "long-context-hog"


def test_eight_ranks_in_one_log_without_metrics(server) -> None:
    lines: list[str] = []
    for rank in range(8):
        one = server(engine=str(rank), seed=rank)
        if rank == 0:
            one.always(running=60, waiting=20, usage=0.7, requests=8)
        else:
            one.always(running=1 if rank == 3 else 0, requests=0.2, usage=0.002)
        folder = Path(one.write(metrics=False))
        part = folder / f"server-{rank}.log"
        lines += part.read_text(encoding="utf-8").splitlines()
        part.unlink()
    lines.sort(key=lambda line: line[line.index(" 11-29 ") :][:15])
    (folder / "server.log").write_text("\n".join(lines) + "\n", encoding="utf-8")
    analysis = analyze([str(folder)])
    assert analysis.verdict.cause == "replica-imbalance"
    assert len(analysis.engines) == 8


def test_requests_refused_by_the_servers_own_queue_limit(server) -> None:
    """From 0.32 on a bounded queue counts what it refuses; the metrics alone tell."""
    full = server(version="0.32.0", max_num_seqs=64, flags={"max_num_queued_reqs": 16})
    full.during(500, 900, running=64, waiting=16, requests=8, ttft=2.0, rejected=1.0)
    analysis = analyze([full.write(log=False)])
    assert analysis.verdict.cause == "overload-shedding"
    action = next(f for f in analysis.findings if f.cause == "overload-shedding").actions[-1]
    assert action.command is None or "--max-num-queued-reqs" in action.command
