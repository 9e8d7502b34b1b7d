"""`forensics lint` as people and CI call it: output, exit codes, mending, start-up."""

import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

ROOT = Path(__file__).parents[2]
BAD = """# KV 캐시

사용률은 `max(vllm:gpu_cache_usage_perc)` 로 본다.

```promql
sum(rate(vllm:prompt_tokens[5m]))
```
"""
GOOD = BAD.replace("gpu_cache", "kv_cache").replace("tokens[", "tokens_total[")


def run(*args: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    code = "import sys; from forensics.cli.main import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *args],
        cwd=cwd,
        env={"PYTHONPATH": str(ROOT), "PATH": "", "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.md").write_text(BAD, encoding="utf-8")
    return tmp_path


def test_text_points_at_the_characters(folder: Path) -> None:
    done = run("lint", "a.md", cwd=folder)
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert lines[0] == "a.md:3:11: critical: RB103 metric-renamed"
    assert lines[1] == "  3 | 사용률은 `max(vllm:gpu_cache_usage_perc)` 로 본다."
    # Hangul is two columns wide on a terminal: eight of them before the metric's column.
    assert lines[2] == "    | " + " " * (10 + 4) + "^" * len("vllm:gpu_cache_usage_perc")
    assert lines[4] == "  --fix writes: vllm:kv_cache_usage_perc"
    assert lines[-1] == "2 findings in 1 file (2 that --fix mends)."


def test_json(folder: Path) -> None:
    done = run("lint", "--format", "json", ".", cwd=folder)
    document = json.loads(done.stdout)
    assert document["schema_version"] == 1
    assert document["tool"]["name"] == "forensics"
    assert document["files"] == ["a.md"]
    assert document["snoozed"] == []
    assert document["findings"][1] == {
        "rule_id": "RB106",
        "name": "counter-without-total",
        "severity": "critical",
        "message": "vllm:prompt_tokens is a counter: it is exposed as vllm:prompt_tokens_total.",
        "file": "a.md",
        "line": 6,
        "column": 10,
        "end_line": 6,
        "end_column": 28,
        "text": "vllm:prompt_tokens",
        "replacement": "vllm:prompt_tokens_total",
    }
    assert run("lint", "--format", "json", ".", cwd=folder).stdout == done.stdout


def test_sarif_and_the_others(folder: Path) -> None:
    done = run("lint", "--format", "sarif", "-o", "out.sarif", "a.md", cwd=folder)
    assert done.returncode == 1 and done.stdout == ""
    schema = ROOT / "tests" / "ci_formats" / "sarif-schema-2.1.0.json"
    document = json.loads((folder / "out.sarif").read_text(encoding="utf-8"))
    jsonschema.Draft4Validator(json.loads(schema.read_text(encoding="utf-8"))).validate(document)
    assert [one["ruleId"] for one in document["runs"][0]["results"]] == ["RB103", "RB106"]
    github = run("lint", "--format", "github", "a.md", cwd=folder).stdout
    assert github.startswith("::error file=a.md,line=3,endLine=3,col=11,endColumn=36,")
    assert 'failures="2"' in run("lint", "--format", "junit", "a.md", cwd=folder).stdout


def test_diff_then_fix_then_nothing(folder: Path) -> None:
    done = run("lint", "--diff", "a.md", cwd=folder)
    assert done.returncode == 1
    assert (
        "-sum(rate(vllm:prompt_tokens[5m]))\n+sum(rate(vllm:prompt_tokens_total[5m]))"
        in done.stdout
    )
    assert (folder / "a.md").read_text(encoding="utf-8") == BAD
    done = run("lint", "--fix", "a.md", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "Mended 2 place(s) in 1 file(s).\n")
    assert (folder / "a.md").read_text(encoding="utf-8") == GOOD
    assert run("lint", "--fix", "a.md", cwd=folder).stderr == ""
    assert run("lint", "--diff", "a.md", cwd=folder).returncode == 0


def test_mending_keeps_bytes_and_line_ends(folder: Path) -> None:
    path = folder / "a.md"
    path.write_bytes(b"\xef\xbb\xbfbad \xff byte\r\n`max(vllm:gpu_cache_usage_perc)`\r\n")
    assert run("lint", "--fix", "a.md", cwd=folder).returncode == 0
    assert path.read_bytes() == b"\xef\xbb\xbfbad \xff byte\r\n`max(vllm:kv_cache_usage_perc)`\r\n"


def test_version_of_the_command_line_wins(folder: Path) -> None:
    assert run("lint", "--vllm-version", "0.8.5", "a.md", cwd=folder).stdout.count("RB103") == 0
    (folder / "forensics.toml").write_text('vllm-version = "0.8.5"\n')
    assert run("lint", "a.md", cwd=folder).stdout.count("RB103") == 0
    assert run("lint", "--vllm-version", "0.12", "a.md", cwd=folder).stdout.count("RB103") == 1


def test_exit_codes(folder: Path) -> None:
    (folder / "good.md").write_text(GOOD, encoding="utf-8")
    assert run("lint", "good.md", cwd=folder).returncode == 0
    assert run("lint", "a.md", cwd=folder).returncode == 1
    assert run("lint", "--fail-on", "never", "a.md", cwd=folder).returncode == 0
    for wrong in (
        ["--vllm-version", "newest", "a.md"],
        ["--format", "xml", "a.md"],
        ["--config", "none.toml", "a.md"],
        ["--baseline", "none.json", "a.md"],
        ["--fix", "--diff", "a.md"],
    ):
        assert run("lint", *wrong, cwd=folder).returncode == 2, wrong
    assert run("lint", "missing.md", cwd=folder).returncode == 3
    (folder / "a.pdf").write_bytes(b"%PDF")
    assert run("lint", "a.pdf", cwd=folder).returncode == 3


def test_baseline(folder: Path) -> None:
    done = run("lint", "--write-baseline", "base.json", ".", cwd=folder)
    assert done.returncode == 0
    done = run("lint", "--baseline", "base.json", ".", cwd=folder)
    assert (done.returncode, done.stdout) == (0, "0 findings in 2 files (2 in the baseline).\n")
    done = run("lint", "--baseline", "base.json", "--fix", ".", cwd=folder)
    assert (folder / "a.md").read_text(encoding="utf-8") == BAD


def test_hostile_text_is_shown_escaped(folder: Path) -> None:
    (folder / "a.md").write_text("`max(vllm:gpu_cache_usage_perc) \x1b[31m > 90`\n")
    done = run("lint", "a.md", cwd=folder)
    assert "\x1b" not in done.stdout and "\\x1b[31m" in done.stdout


def test_known_metrics_and_recording_rules_of_other_files(folder: Path) -> None:
    (folder / "a.md").write_text("`vllm:hit_ratio < 0.3` `vllm:our_depth > 3`")
    assert run("lint", ".", cwd=folder).stdout.count("RB102") == 2
    (folder / "r.yaml").write_text("- record: vllm:hit_ratio\n  expr: up\n")
    (folder / "forensics.toml").write_text('known-metrics = ["vllm:our_*"]\n')
    assert run("lint", ".", cwd=folder).returncode == 0


def test_many_files_in_two_processes_give_the_same(folder: Path) -> None:
    for number in range(80):
        (folder / f"n{number:02}.md").write_text(BAD, encoding="utf-8")
    document = json.loads(run("lint", "--format", "json", ".", cwd=folder).stdout)
    assert len(document["files"]) == 81 and len(document["findings"]) == 162
    order = [(one["file"], one["line"]) for one in document["findings"]]
    assert order == sorted(order)


def test_starts_without_the_heavy_libraries(folder: Path) -> None:
    """They take most of a second to import; `benchmarks/lint_speed.py` measures the rest."""
    code = (
        "import sys; sys.argv = ['forensics', 'lint', 'a.md']\n"
        "from forensics.cli.main import main\n"
        "try:\n    main()\nfinally:\n"
        "    heavy = {'polars', 'pyarrow', 'altair', 'vl_convert', 'numpy'} & set(sys.modules)\n"
        "    print('heavy:', sorted(heavy))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=False,
    )
    assert b"heavy: []" in done.stdout, done.stdout + done.stderr
