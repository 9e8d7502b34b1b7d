"""`forensics analyze` as a person calls it: what it takes, prints, writes, and exits with."""

import io
import json
import subprocess
import sys

import pytest


@pytest.fixture
def cliff(corpus):
    folder = corpus / "b-preemption-cliff-v032"
    return [folder / "server.log", folder / "metrics"]


def test_verdict_and_exit_code_zero(call, cliff):
    code, out, err = call("analyze", *cliff)
    assert code == 0
    assert "preemption-cliff (PC101)" in out
    assert "server.log:" in out
    assert err == ""


@pytest.mark.parametrize(
    ("recording", "severity", "code"),
    [
        ("b-preemption-cliff-v032", "critical", 1),
        ("b-preemption-cliff-v032", "info", 1),
        ("a-healthy-v032", "info", 0),
        ("f-queueing-v032", "critical", 0),
        ("f-queueing-v032", "warning", 1),
    ],
)
def test_fail_on_makes_findings_an_exit_code(call, corpus, recording, severity, code):
    assert call("analyze", corpus / recording, "-q", "--fail-on", severity)[0] == code


def test_quiet_is_the_verdict_only(call, cliff):
    _, short, _ = call("analyze", *cliff, "--quiet")
    _, long, _ = call("analyze", *cliff)
    assert "preemption-cliff" in short
    assert len(short.splitlines()) < 0.5 * len(long.splitlines())
    assert "server.log:" not in short


def test_paths_in_any_order_are_the_same_analysis(call, cliff):
    first = json.loads(call("analyze", *cliff, "--format", "json")[1])
    second = json.loads(call("analyze", *cliff[::-1], "--format", "json")[1])
    for part in ("verdict", "engines", "decomposition", "clocks"):
        assert first[part] == second[part] or part == "clocks"
    assert first["verdict"]["cause"] == "preemption-cliff"


def test_format_by_suffix_and_the_answer_on_the_terminal_as_well(call, cliff, tmp_path):
    page, record = tmp_path / "report.html", tmp_path / "report.json"
    code, out, _ = call("analyze", *cliff, "-o", page, "-o", record)
    assert code == 0
    assert "preemption-cliff" in out
    assert page.read_text("utf-8").lstrip().lower().startswith("<!doctype html>")
    assert json.loads(record.read_text("utf-8"))["verdict"]["cause"] == "preemption-cliff"


def test_quiet_with_a_file_prints_nothing(call, cliff, tmp_path):
    _, out, _ = call("analyze", *cliff, "-q", "-o", tmp_path / "report.md")
    assert out == ""
    assert "## " in (tmp_path / "report.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "nothing to analyze"),
        (["x.log", "-o", "report.xyz"], "the suffix names no report format"),
        (["x.log", "--since", "yesterday"], "is no time"),
        (["x.log", "--until", "17:00"], "is no time"),
        (["x.log", "--slo-ttft", "fast"], "is no duration"),
        (["x.log", "--fail-on", "never"], "fail-on"),
        (["x.log", "--format", "yaml"], "format"),
        (["--nope"], "No such option"),
    ],
)
def test_usage_errors(call, arguments, said):
    code, out, err = call("analyze", *arguments)
    assert code == 2
    assert said in err
    assert out == ""


def test_zone_that_is_none(call, cliff):
    code, _, err = call("analyze", *cliff, "--tz", "Mars/Olympus")
    assert code == 2
    assert "Asia/Seoul" in err


def test_window_that_leaves_nothing_says_where_the_data_are(call, cliff):
    code, _, err = call("analyze", *cliff, "--since", "2030-01-01")
    assert code == 2
    assert "2026-11-29T17:31:" in err


@pytest.mark.parametrize("until", ["2026-11-29T17:32:45Z", "2026-11-30T02:32:45+09:00"])
def test_until_before_the_incident_hides_it(call, cliff, until):
    document = json.loads(call("analyze", *cliff, "--format", "json", "--until", until)[1])
    assert document["verdict"]["cause"] != "preemption-cliff"
    assert document["window"]["end"] <= "2026-11-29T17:32:45Z"


def test_since_before_the_end_keeps_that_much(call, cliff):
    document = json.loads(call("analyze", *cliff, "--format", "json", "--since", "60s")[1])
    assert document["window"]["start"] >= "2026-11-29T17:33:20"
    assert document["engines"][0]["epochs"][0]["vllm_version"] == "0.32.0"  # facts stay


def test_unknown_file(call, tmp_path):
    code, _, err = call("analyze", tmp_path / "nowhere.log")
    assert code == 3
    assert "nowhere.log" in err
    assert "No such file" in err


def test_empty_folder(call, tmp_path):
    code, _, err = call("analyze", tmp_path)
    assert code == 3
    assert "no files there" in err


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("empty.log", b""),
        ("zeros.bin", bytes(5000)),
        ("random.bin", bytes((index * 7919 + index // 13) % 256 for index in range(5000))),
        ("nginx.log", b'10.0.0.1 - - [29/Nov/2026:17:33:05 +0000] "GET / HTTP/1.1" 200 12\n' * 50),
        ("half.json", b'{"status": "success", "data": {"resultType": "matrix", "result": ['),
        ("node.prom", b"# TYPE node_load1 gauge\nnode_load1 0.5\n"),
    ],
)
def test_nothing_of_vllm_in_it(call, tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    code, out, err = call("analyze", tmp_path / name)
    assert code == 3
    assert name in err
    assert "Traceback" not in err
    assert out == ""


def test_junk_beside_good_files_is_listed_and_does_no_harm(call, cliff, tmp_path):
    (tmp_path / "random.bin").write_bytes(bytes(range(256)) * 20)
    code, out, _ = call("analyze", *cliff, tmp_path / "random.bin", "--format", "json")
    document = json.loads(out)
    assert code == 0
    assert document["verdict"]["cause"] == "preemption-cliff"
    junk = next(f for f in document["coverage"]["files"] if f["path"].endswith("random.bin"))
    assert junk["samples"] == 0
    assert junk["note"] == "neither a vLLM log nor Prometheus metrics"


def test_standard_input(call, cliff, monkeypatch):
    class Stdin:
        buffer = io.BytesIO(cliff[0].read_bytes())

    monkeypatch.setattr(sys, "stdin", Stdin)
    code, out, _ = call("analyze", "-", "--format", "json")
    document = json.loads(out)
    assert code == 0
    assert document["engines"][0]["epochs"][0]["model"] == "tiny-llama"
    assert document["window"]["start"] > "2020"


def test_tables_for_own_queries(call, cliff, tmp_path):
    assert call("analyze", *cliff, "-q", "--export", tmp_path / "tables")[0] == 0
    names = {path.stem for path in (tmp_path / "tables").iterdir()}
    assert names == {"sources", "samples", "events", "facts", "timeline"}


def test_operator_names_the_zone(call, corpus):
    log = corpus / "l-preemption-cliff-tz-v032" / "server.log"
    log = log if log.exists() else log.with_suffix(".log.gz")
    document = json.loads(call("analyze", log, "--tz", "Asia/Seoul", "--format", "json")[1])
    (clock,) = document["clocks"]
    assert (clock["offset_s"], clock["quality"]) == (32400.0, "exact")
    assert document["window"]["start"].startswith("2026-11-29T18:0")


def test_version(call):
    from forensics import __version__

    code, out, _ = call("--version")
    assert (code, out) == (0, f"forensics {__version__}\n")


@pytest.mark.parametrize(
    "command", ["analyze", "ceiling", "compare", "collect", "lint", "alerts", "rules", "explain"]
)
def test_help_of_every_command_names_the_exit_codes(call, command):
    code, out, _ = call(command, "--help")
    assert code == 0
    assert "Exit codes: 0 done" in " ".join(out.split())


def test_rules_and_their_explanation(call):
    from rules import RULES

    code, out, _ = call("rules")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == [rule.id for rule in RULES]
    for name in (RULES[0].id, RULES[0].id.lower(), RULES[0].name):
        code, out, _ = call("explain", name)
        assert code == 0
        assert "What it detects" in out


def test_explanation_of_an_unknown_rule(call):
    code, _, err = call("explain", "PC999")
    assert code == 2
    assert "PC101" in err


def test_reader_that_has_seen_enough(cliff):
    """`forensics analyze … | head -1` ends in silence."""
    script = "from forensics.cli.main import main; main()"
    command = [sys.executable, "-c", script, "analyze", *map(str, cliff)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        err = process.stderr.read()
    assert process.returncode == 0
    assert err == b""


HEAVY = ("polars", "pyarrow", "altair", "vl_convert", "numpy", "ruptures", "pandas")


@pytest.mark.parametrize("arguments", [["--help"], ["analyze", "--help"], ["--version"]])
def test_help_imports_nothing_heavy(arguments):
    script = (
        "import sys; sys.argv = ['forensics', *sys.argv[1:]]\n"
        "from forensics.cli.main import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        f"print('HEAVY', [name for name in {HEAVY!r} if name in sys.modules])\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=True
    )
    assert found.stdout.splitlines()[-1] == "HEAVY []"


def test_lint_imports_nothing_heavy(tmp_path):
    (tmp_path / "runbook.md").write_text("# Runbook\n\nNothing to see.\n", "utf-8")
    script = (
        "import sys; sys.argv = ['forensics', *sys.argv[1:]]\n"
        "from forensics.cli.main import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        f"print('HEAVY', [name for name in {HEAVY[:4]!r} if name in sys.modules])\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", script, "lint", str(tmp_path / "runbook.md")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert found.stdout.splitlines()[-1] == "HEAVY []"


def test_the_package_runs_as_a_module():
    done = subprocess.run(
        [sys.executable, "-m", "forensics", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("forensics ")
