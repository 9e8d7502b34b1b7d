"""What must not leave the house does not; what a reader needs stays."""

from dataclasses import replace

import pytest

from forensics.analysis import Where
from forensics.config import Options
from forensics.reports import html, json, markdown
from forensics.reports.redaction import redacted
from forensics.reports.text import TextStyle, render

SECRETS = (
    "prod-gpu-17.internal:8000",
    "10.1.2.3",
    "acme/secret-llm-70b",
    "chatcmpl-9f86d081884c7d65",
    "alice",
)
LINE = (
    "Received request chatcmpl-9f86d081884c7d65 from 10.1.2.3:5123 for /home/alice/run: "
    "prompt: 'My name is Bob', params: x"
)


@pytest.fixture
def telling(analysis):
    """The incident with names, addresses and a prompt in every place that can hold them."""
    main = analysis.findings[0]
    source = Where("/home/alice/server.log", line=7, text=LINE)
    series = Where(
        "q.json", series='vllm:x{instance="prod-gpu-17.internal:8000",job="vllm"}', time=1.0
    )
    exhibits = (
        replace(main.exhibits[0], source=source),
        replace(main.exhibits[1], source=series),
    )
    summary = replace(main.summary, values={**main.summary.values, "engine": SECRETS[0]})
    epoch = replace(analysis.engines[0].epochs[0], model=SECRETS[2])
    engine = replace(analysis.engines[0], instance=SECRETS[0], epochs=(epoch,))
    return replace(
        analysis,
        verdict=replace(analysis.verdict, summary=summary),
        findings=(replace(main, exhibits=exhibits, summary=summary),),
        engines=(engine,),
        ceilings=(replace(analysis.ceilings[0], model=SECRETS[2]),),
        files=(replace(analysis.files[0], path="/home/alice/server.log"),),
        reproduce="forensics analyze /home/alice/server.log",
    )


def everything(analysis):
    return "\n".join(
        [
            json.render(analysis),
            render(analysis, TextStyle(verbose=True, explain=True)),
            markdown.render(analysis).text,
            html.render(analysis, interactive=False),
        ]
    )


def test_prompts_are_left_out_unless_asked_for(telling):
    assert "My name is Bob" not in everything(redacted(telling, Options()))
    asked = redacted(telling, Options(include_prompts=True))
    assert "My name is Bob" in everything(asked)


@pytest.mark.parametrize("options", [Options(anonymize=True), Options(confidential=True)])
def test_no_name_is_left(telling, options):
    shown = everything(redacted(telling, options))
    for secret in SECRETS:
        assert secret not in shown, secret


def test_stand_ins_are_the_same_everywhere(telling):
    one = redacted(telling, Options(anonymize=True))
    assert one.engines[0].instance == "host-1"
    assert one.verdict.summary.values["engine"] == "host-1"
    assert one.findings[0].exhibits[1].source.series == 'vllm:x{instance="host-1",job="group-1"}'
    assert one.engines[0].epochs[0].model == one.ceilings[0].model == "model-1"
    assert one.files[0].path == "/home/user-1/server.log"
    assert (
        one.findings[0]
        .exhibits[0]
        .source.text.startswith("Received request request-1 from host-2 for /home/user-1/run")
    )


def test_confidential_has_no_log_text_and_no_labels(telling):
    one = redacted(telling, Options(confidential=True))
    first, second = (exhibit.source for exhibit in one.findings[0].exhibits)
    assert (first.file, first.line, first.text) == ("file-1.log", 7, None)
    assert second.series == "vllm:x"
    assert one.reproduce is None
    assert one.files[0].unknown_shapes == ()


def test_figures_times_and_settings_stay(telling):
    one = redacted(telling, Options(confidential=True))
    assert one.window == telling.window
    assert one.engines[0].epochs[0].config == telling.engines[0].epochs[0].config
    assert one.engines[0].epochs[0].vllm_version == "0.32.0"
    assert one.tracks[0].signals == telling.tracks[0].signals


def test_nothing_is_touched_unless_asked(analysis):
    assert redacted(analysis, Options()) == analysis


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ('{"log": "x", "prompt": "my secret"}', '{"log": "x", "prompt": …'),
        ("messages=[{'role': 'user', 'content': 'my secret'}]", "messages=…"),
        ("1 validation error input_value='my secret', input_type=str", "…input_value=…"),
        (
            "ValueError: bad 'my secret' in layer 'model.0'",
            "ValueError: bad '…' in layer 'model.0'",
        ),
        ("Request a failed due to X: 'secret'", "Request a failed due to X: '…'"),
        ("Avg prompt throughput: 1.0 tokens/s", "Avg prompt throughput: 1.0 tokens/s"),
    ],
)
def test_log_text_without_what_users_wrote(telling, line, shown):
    main = telling.findings[0]
    exhibit = replace(main.exhibits[0], source=Where("a.log", line=1, text=line))
    one = replace(telling, findings=(replace(main, exhibits=(exhibit,)),))
    text = redacted(one, Options()).findings[0].exhibits[0].source.text
    assert text.endswith(shown.removeprefix("…"))
    assert "secret" not in text
