"""Shell text into commands and server starts."""

from hypothesis import given
from hypothesis import strategies as st

from forensics.runbooks.serve import serve_commands, single_flag
from forensics.runbooks.shell import commands, unprompted
from forensics.runbooks.text import Mapped


def words(text: str) -> list[list[str]]:
    return [[word.text.text for word in one.words] for one in commands(Mapped.plain(text, 0))]


def test_quotes_continuations_and_comments() -> None:
    text = "vllm serve 'a b' \\\n  --x=\"c d\" e\\ f # not this\nls"
    assert words(text) == [["vllm", "serve", "a b", "--x=c d", "e f"], ["ls"]]


def test_continuation_with_blanks_behind_it_goes_on() -> None:
    assert words("vllm serve m \\  \n  --max-num-seqs 4\n") == [
        ["vllm", "serve", "m", "--max-num-seqs", "4"]
    ]


def test_pipes_redirections_and_lists() -> None:
    text = "FOO=1 a 2>&1 >out.log | b && c; d & (e)"
    found = commands(Mapped.plain(text, 0))
    assert [[word.text.text for word in one.words] for one in found] == [
        ["a"],
        ["b"],
        ["c"],
        ["d"],
        ["e"],
    ]
    assert [word.text.text for word in found[0].assignments] == ["FOO=1"]
    assert found[1].fed_by is found[0] and found[2].fed_by is None


def test_here_document_is_no_command() -> None:
    assert words("cat <<'EOF' > f\nvllm serve --nope\nEOF\nls") == [["cat"], ["ls"]]


def test_substitution_is_read_too() -> None:
    assert ["grep", "x"] in words("N=$(kubectl logs p | grep x)\n")


def test_places_survive_quotes() -> None:
    text = 'vllm serve "m" --max-num-seqs "2"5"6"'
    (command,) = serve_commands(commands(Mapped.plain(text, 100)))
    argument = command.given("--max-num-seqs")
    assert argument is not None and argument.value is not None
    assert argument.value.text == "256"
    start, end = argument.value.span
    assert text[start - 100 : end - 100] == '2"5"6'


def test_transcript() -> None:
    text = "$ vllm serve m \\\n    --max-num-seqs 4\nINFO loading\nroot@gpu1:~# ls\n"
    pieces = [piece.text for piece in unprompted(Mapped.plain(text, 0))]
    assert pieces == ["vllm serve m \\\n    --max-num-seqs 4", "ls"]


def test_container_start() -> None:
    text = (
        "docker run --gpus all -e VLLM_USE_V1=0 -p 8000:8000 "
        "registry.example/mirror/vllm/vllm-openai:v0.9.2-cu128 --model m -tp 2"
    )
    (command,) = serve_commands(commands(Mapped.plain(text, 0)))
    assert (command.version, command.engine) == ("0.9.2", "V0")
    assert command.value("--tensor-parallel-size") == "2"
    assert command.model is not None and command.model.text == "m"


def test_single_flags() -> None:
    found = single_flag(Mapped.plain("--max-num-seqs=256", 0))
    assert found is not None and found.value("--max-num-seqs") == "256"
    assert single_flag(Mapped.plain("--log-opt max-size=1m", 0)) is None
    assert single_flag(Mapped.plain("--max-num-seqs N", 0)).value("--max-num-seqs") is None  # type: ignore[union-attr]


@given(st.text(max_size=200))
def test_any_text_is_read(text: str) -> None:
    for command in commands(Mapped.plain(text, 0)):
        for word in (*command.assignments, *command.words):
            start, end = word.text.span
            assert 0 <= start <= end <= len(text)
