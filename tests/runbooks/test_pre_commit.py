"""The hooks from end to end: `pre-commit try-repo` in a real repository fails, mends, passes."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
BUILD_S = 900
"""The first run builds an environment with all dependencies."""
BAD = "Watch `max(vllm:gpu_cache_usage_perc)`.\n"


def test_hooks_file_names_both_hooks() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert [hook["id"] for hook in hooks] == ["forensics-lint", "forensics-lint-fix"]
    assert hooks[1]["entry"] == "forensics lint --fix"


def git(*arguments: str, cwd: Path) -> None:
    subprocess.run(
        ["git", "-c", "user.name=t", "-c", "user.email=t@example.com", *arguments],
        cwd=cwd,
        check=True,
        capture_output=True,
    )


def committed(folder: Path) -> Path:
    git("init", "-q", "-b", "main", cwd=folder)
    git("add", "-A", cwd=folder)
    git("commit", "-q", "-m", "first", cwd=folder)
    return folder


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The product as a repository of its own, from the files here, committed or not."""
    folder = tmp_path_factory.mktemp("product")
    for name in ("forensics", "parsers", "rules"):
        shutil.copytree(
            ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "*.pyc")
        )
    for name in ("pyproject.toml", "README.md", "LICENSE", ".pre-commit-hooks.yaml"):
        shutil.copy(ROOT / name, folder / name)
    return committed(folder)


def hook(name: str, product: Path, cwd: Path, home: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pre_commit", "try-repo", str(product), name, "--all-files"]
    try:
        return subprocess.run(
            command,
            cwd=cwd,
            env={**os.environ, "PRE_COMMIT_HOME": str(home), "NO_COLOR": "1"},
            capture_output=True,
            text=True,
            timeout=BUILD_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"the hook's environment was not built within {BUILD_S} s")


@pytest.mark.slow
def test_hook_fails_mends_and_passes(
    product: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    pytest.importorskip("pre_commit", reason="pre-commit is not installed")
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    home = tmp_path_factory.mktemp("pre-commit-home")
    (tmp_path / "docs").mkdir()
    runbook = tmp_path / "docs" / "runbook.md"
    runbook.write_text(BAD)
    (tmp_path / "notes.txt").write_text(BAD)
    committed(tmp_path)

    done = hook("forensics-lint", product, tmp_path, home)
    if "CalledProcessError" in done.stdout and "pip" in done.stdout:
        reason = next((line for line in done.stdout.splitlines() if "ERROR" in line), "")
        pytest.skip(f"pip cannot build the hook's environment here: {reason.strip()}")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "docs/runbook.md:1:12: critical: RB103 metric-renamed" in done.stdout
    assert "1 finding in 1 file" in done.stdout
    assert runbook.read_text() == BAD

    done = hook("forensics-lint-fix", product, tmp_path, home)
    assert done.returncode == 1 and "files were modified by this hook" in done.stdout
    assert runbook.read_text() == "Watch `max(vllm:kv_cache_usage_perc)`.\n"

    git("add", "-A", cwd=tmp_path)
    done = hook("forensics-lint", product, tmp_path, home)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Passed" in done.stdout
