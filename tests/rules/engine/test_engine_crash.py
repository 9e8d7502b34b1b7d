"""ENG502 engine-crash: the cases of engine_crash.yaml, and what releases print in which order."""

from forensics.pipeline import analyze

# vLLM 0.32.0 whose EngineCore process was killed: clearing up comes before the word of its death.
_KILLED = """\
(EngineCore pid=15857) INFO 11-30 04:52:29 [core.py:133] Initializing a V1 LLM engine (v0.32.0) \
with config: model='tiny-llama', speculative_config=None
{stats}\
(APIServer pid=15824) INFO 11-30 04:53:35 [utils.py:628] [shutdown] Process manager: send sigterm \
to process EngineCore
(Worker pid=15870) INFO 11-30 04:53:35 [multiproc_executor.py:843] Parent process exited, \
terminating worker queues
(APIServer pid=15824) WARNING 11-30 04:53:35 [core_client.py:817] [shutdown] MPClient: engine core \
exited unexpectedly; starting cleanup
(APIServer pid=15824) INFO 11-30 04:53:35 [core_client.py:770] [shutdown] MPClient: start \
timeout=default
(APIServer pid=15824) ERROR 11-30 04:53:35 [async_llm.py:906] AsyncLLM output_handler failed.
"""
_STATS = (
    "(APIServer pid=15824) INFO 11-30 04:{:02d}:{:02d} [loggers.py:335] Engine 000: Avg prompt "
    "throughput: 1352.4 tokens/s, Avg generation throughput: 904.3 tokens/s, Running: 4 reqs, "
    "Waiting: 0 reqs, CPU KV cache usage: 2.1%, Prefix cache hit rate: 85.5%\n"
)


def test_engine_crash(rule_case):
    rule_case.holds()


def test_clearing_up_after_a_death_is_no_stop_that_someone_asked_for(tmp_path):
    stats = "".join(_STATS.format(52 + at // 12, at % 12 * 5) for at in range(6, 19))
    path = tmp_path / "server.log"
    path.write_text(_KILLED.format(stats=stats), encoding="utf-8")
    assert analyze([str(path)]).verdict.cause == "engine-crash"
