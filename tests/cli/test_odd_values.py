"""Values nobody meant to give: each is refused with a sentence and an exit code, never a crash."""

import pytest

from forensics.cli import analyze as command


@pytest.fixture
def log(corpus):
    return corpus / "b-preemption-cliff-v032" / "server.log"


@pytest.mark.parametrize("option", ["--since", "--until"])
@pytest.mark.parametrize("value", ["", "nan", "inf", "1e400"])
def test_a_number_that_is_no_time(call, log, option, value):
    code, _, err = call("analyze", log, option, value)
    assert code == 2
    assert f"{option} {value!r} is no time" in err


def test_a_config_nested_without_end(call, log, tmp_path):
    (tmp_path / "config.json").write_text("[" * 100_000)
    code, _, err = call("analyze", log, "--model", tmp_path / "config.json")
    assert code == 2
    assert "cannot be read as a model's config.json" in err


def test_a_model_name_longer_than_any_path(call, log):
    assert call("analyze", log, "-q", "--model", "m" * 5000)[0] == 0


@pytest.mark.parametrize(
    ("path", "reason"),
    [("", "No such file or directory"), ("a" * 5000, "File name too long"), ("a\0b", "null byte")],
)
def test_a_path_that_no_file_can_have(call, path, reason):
    code, _, err = call("analyze", path)
    assert code == 3
    assert reason in err


def test_names_in_messages_do_not_act_on_the_terminal(call):
    code, _, err = call("analyze", "/nope\x1b]0;title\x07")
    assert code == 3
    assert err.count("\x1b") == 0
    assert "/nope\\x1b]0;title\\x07: No such file or directory" in err


def test_an_address_that_cannot_be_read(call):
    code, _, err = call("analyze", "--prometheus", "http://[::1")
    assert code == 2
    assert "is no address of a server (Invalid IPv6 URL)" in err


def test_output_that_cannot_be_written_is_a_matter_of_the_call(call, log, tmp_path):
    code, _, err = call("analyze", log, "-q", "-o", tmp_path / ("x" * 300 + ".md"))
    assert code == 2
    assert "File name too long" in err


def test_a_report_that_is_no_text_is_not_overwritten(call, log, tmp_path):
    (tmp_path / "report.md").write_bytes(b"\xff\xfe")
    code, _, err = call("analyze", log, "-q", "-o", tmp_path / "report.md")
    assert code == 2
    assert "cannot be read, and would be lost" in err
    assert (tmp_path / "report.md").read_bytes() == b"\xff\xfe"


def test_a_link_stays_a_link_and_its_target_gets_the_report(call, log, tmp_path):
    (tmp_path / "report.JSON").symlink_to("real.json")
    assert call("analyze", log, "-q", "-o", tmp_path / "report.JSON")[0] == 0
    assert (tmp_path / "report.JSON").is_symlink()
    assert (tmp_path / "real.json").read_text().startswith("{")


def test_a_fault_of_ours_is_not_taken_for_findings(call, log, monkeypatch):
    def broken(*_, **__):
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr(command, "_run", broken)
    monkeypatch.delenv("FORENSICS_DEBUG", raising=False)
    code, _, err = call("analyze", log)
    assert code == 2
    assert err == (
        "forensics: internal error (ZeroDivisionError: by zero); please report it "
        "(FORENSICS_DEBUG=1 shows where)\n"
    )


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--gpu", "nonsense"), "give one such as H100"),
        (("--gpu", "H10O"), "near it: H100"),
        (("--gpu", ""), "--gpu ''"),
        (("--vllm-version", "x"), "--vllm-version 'x' is no release"),
    ],
)
def test_an_option_that_would_do_nothing_is_refused(call, log, arguments, told):
    code, _, err = call("analyze", log, "-q", *arguments)
    assert code == 2
    assert told in err


@pytest.mark.parametrize("call_of", [("compare", "", ""), ("lint", ""), ("lint", "a.md", " ")])
def test_an_empty_path_is_not_the_present_folder(call, monkeypatch, tmp_path, call_of):
    monkeypatch.chdir(tmp_path)
    code, out, err = call(*call_of)
    assert code == 2
    assert "an empty path names nothing" in out + err


def test_an_answer_that_is_an_error_is_named_with_its_error(call, tmp_path):
    path = tmp_path / "q.json"
    path.write_text('{"status":"error","errorType":"timeout","error":"query timed out"}')
    code, _, err = call("analyze", path)
    assert code == 3
    assert str(path) in err
    assert "query timed out" in err
