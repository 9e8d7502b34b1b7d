"""`forensics ceiling` as people type it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

_MAIN = "import sys; from forensics.cli.main import main; sys.exit(main())"
ASKED = [
    *("--gpu", "A100-80GB", "--model", "meta-llama/Meta-Llama-3-8B", "--context", "2048"),
    *("--output", "512", "--shared-prefix", "1638", "--utilization", "0.9", "--slo-itl", "50ms"),
]


def run(*arguments):
    return subprocess.run(
        [sys.executable, "-c", _MAIN, "ceiling", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env={"COLUMNS": "100", "PATH": "", "PYTHONPATH": str(Path(__file__).parents[2])},
    )


def test_the_worked_example_on_the_terminal() -> None:
    done = run(*ASKED)
    assert done.returncode == 0, done.stderr
    assert "135" in done.stdout
    assert "decided by B_slo" in done.stdout
    assert "28,041 blocks = 448,656 tokens" in done.stdout
    assert "B x 730" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 100


def test_json_holds_the_ceilings_and_is_the_same_each_time() -> None:
    first, second = run(*ASKED, "--format", "json"), run(*ASKED, "--format", "json")
    assert first.stdout == second.stdout
    tree = json.loads(first.stdout)
    assert set(tree) == {"schema_version", "tool", "ceilings"}
    (ceiling,) = tree["ceilings"]
    assert ceiling["max_num_seqs"]["value"] == 135
    assert ceiling["binding_bound"] == "B_slo"
    safe = next(bound for bound in ceiling["bounds"] if bound["name"] == "B_safe")
    assert safe["inputs"]["N"] == {"value": 448656, "unit": "tokens", "source": "reckoned"}
    assert safe["low"] < safe["value"] < safe["high"]


def test_the_table_shows_batches_and_changes() -> None:
    chat = [*ASKED, "--turns", "3", "--think", "30s", "--table", "--format", "json"]
    tree = json.loads(run(*chat).stdout)
    batches = tree["what_if"]["batches"]
    assert [row["batch"] for row in batches] == sorted(row["batch"] for row in batches)
    assert all(0 <= row["hit_rate"] <= 1 and 0 <= row["preemption_risk"] <= 1 for row in batches)
    steps = [row["itl_s"] for row in batches]
    assert steps == sorted(steps)
    changes = {row["change"]: row for row in tree["what_if"]["changes"]}
    assert changes["fp8 KV cache"]["pool_tokens"] > 1.9 * changes["as asked"]["pool_tokens"]
    assert changes["NVIDIA H200"]["limit"] > changes["as asked"]["limit"]
    shown = run(*ASKED, "--table", "--lang", "ko").stdout
    assert "fp8 KV cache" in shown
    assert "활성 클라이언트" in shown


def test_a_config_json_stands_for_a_model(tmp_path) -> None:
    config = tmp_path / "config.json"
    config.write_text(
        json.dumps(
            {
                "model_type": "llama",
                "hidden_size": 4096,
                "intermediate_size": 14336,
                "num_attention_heads": 32,
                "num_hidden_layers": 32,
                "num_key_value_heads": 8,
                "vocab_size": 128256,
            }
        )
    )
    for option in ("--config", "--model"):
        done = run("--gpu", "A100-80GB", option, config, "--utilization", "0.9")
        assert "448,656 tokens" in done.stdout


def test_what_cannot_be_computed_says_why() -> None:
    unknown = run("--gpu", "Z9000", "--model", "Meta-Llama-3-8B")
    assert unknown.returncode == 0
    assert "not in the table" in unknown.stdout
    assert "not computed: How much memory the GPU Z9000 has is not known." in unknown.stdout
    assert "Name the GPU" not in unknown.stdout
    hybrid = run("--gpu", "H100", "--model", "Qwen/Qwen3-Next-80B-A3B-Instruct")
    assert "Mamba or linear-attention" in hybrid.stdout
    assert "No model was named" in run("--gpu", "L4").stdout
    stages = run("--gpu", "L4", "--model", "Meta-Llama-3-8B", "--pp", "64")
    assert "64 pipeline stages" in stages.stdout
    full = run("--gpu", "L4", "--model", "Meta-Llama-3-70B")
    assert "leaves no room" in " ".join(full.stdout.split())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--slo-itl", "5ms"], "not met by a single request"),
        (["--context", "900000"], "Not even one request of this length fits"),
        (["--context", "4000", "--turns", "6"], "6 turns do not fit"),
        (["--pool-tokens", "100000", "--model", "Qwen3-Next-80B-A3B"], "a roofline needs"),
    ],
)
def test_a_limit_that_cannot_hold_says_so(arguments, said) -> None:
    asked = ["--gpu", "A100-80GB", "--model", "Meta-Llama-3-8B"]
    done = run(*asked, *arguments)
    assert said in " ".join(done.stdout.split())
    assert said not in " ".join(run(*asked).stdout.split())


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--gpu", "L4", "--model", "Meta-Llama-3-8B", "--slo-itl", "soon"],
        ["--gpu", "L4", "--model", "Meta-Llama-3-8B", "--vllm-version", "main"],
        ["--gpu", "L4", "--model", "Meta-Llama-3-8B", "--context", "0"],
        ["--gpu", "L4", "--config", "missing.json"],
        ["--gpu", "L4", "--model", "missing.json"],
        ["--gpu", "L4", "--lang", "xx"],
        ["--gpu", "L4", "--model", "Meta-Llama-3-8B", "--shared-prefix", "-5"],
        ["--gpu", "L4", "--model", "Meta-Llama-3-8B", "--shared-prefix", "2048"],
        ["--gpu", "L4", "--model", "Meta-Llama-3-8B", "--turns", "0"],
        ["--gpu", "L4", "--model", "Meta-Llama-3-8B", "--prefixes", "0"],
        ["--gpu", "L4", "--model", "Meta-Llama-3-8B", "--reserve-gib", "-1"],
        ["results.csv", "--table"],
        ["server.log", "--tp", "2"],
    ],
)
def test_wrong_calls_exit_with_two(arguments) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr


def test_results_of_a_benchmark_give_a_sweep(tmp_path) -> None:
    table = tmp_path / "summary.csv"
    table.write_text(
        "max_concurrency,hit rate,median_ttft_ms,p99_ttft_ms,output_throughput\n"
        "8,0.65,130,210,310\n32,0.60,200,1850,840\n64,0.31,490,6400,1150\n"
        "128,0.18,1280,16200,1300\n"
    )
    done = run(table, "--slo-ttft", "2s", "--format", "json")
    tree = json.loads(done.stdout)
    assert tree["ceilings"] == []
    assert [row["setting"] for row in tree["sweep"]] == [8, 32, 64, 128]
    assert tree["sweep_summary"]["hit_break"] == {"low": 32.0, "high": 64.0}
    assert tree["sweep_summary"]["largest_within_slo"] == 32
    for given in (table, tmp_path):
        shown = run(given, "--slo-ttft", "2s").stdout
        assert shown.count("between 32 and 64") == 1
        assert "Throughput peaks at 128 (1,300 tok/s)" in shown
