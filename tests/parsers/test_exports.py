"""Logs exported as one document, newest first, or broken by a terminal."""

import csv
import io
import json
import textwrap

import polars as pl
import pytest

import parsers

HEAD = "INFO 05-12 08:01:{second:02} [loggers.py:80] Engine 000: "
STATS = (
    "Avg prompt throughput: {rate:.1f} tokens/s, Avg generation throughput: 20.0 tokens/s, "
    "Running: 3 reqs, Waiting: 1 reqs, GPU KV cache usage: 57.3%, Prefix cache hit rate: 41.3%"
)
START = 1778572860


def line(number):
    return HEAD.format(second=number) + STATS.format(rate=number)


LINES = [line(number) for number in range(10, 16)]


def iso(number):
    return f"2026-05-12T08:01:{number:02}.500Z"


def grafana_json(order):
    return json.dumps(
        [
            {
                "line": line(n),
                "timestamp": str((START + n) * 10**9 + 500_000_000),
                "date": iso(n),
                "fields": {"pod": "vllm-0"},
            }
            for n in order
        ],
        indent=2,
    )


def grafana_csv(order):
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(["Time", "Line", "tsNs", "pod"])
    for n in order:
        writer.writerow([iso(n), line(n), str((START + n) * 10**9 + 500_000_000), "vllm-0"])
    return out.getvalue()


def kibana_csv(order):
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(["@timestamp", "kubernetes.pod.name", "message"])
    for n in order:
        writer.writerow([f"May 12, 2026 @ 08:01:{n:02}.500", "vllm-0", line(n)])
    return out.getvalue()


def loki_answer(order):
    values = [[str((START + n) * 10**9 + 500_000_000), line(n)] for n in order]
    result = [{"stream": {"pod": "vllm-0"}, "values": values}]
    return json.dumps({"status": "success", "data": {"resultType": "streams", "result": result}})


def elastic_answer(order):
    hits = [
        {
            "_source": {
                "@timestamp": iso(n),
                "message": line(n),
                "kubernetes": {"pod": {"name": "vllm-0"}},
            }
        }
        for n in order
    ]
    return json.dumps({"took": 3, "hits": {"hits": hits}})


def journal_pretty(order):
    records = (
        {
            "__REALTIME_TIMESTAMP": str((START + n) * 10**6 + 500_000),
            "_HOSTNAME": "vllm-0",
            "MESSAGE": line(n),
        }
        for n in order
    )
    return "".join(json.dumps(record, indent=8) + "\n" for record in records)


def cloudwatch_answer(order):
    events = [
        {"timestamp": (START + n) * 1000 + 500, "message": line(n), "host": "vllm-0"} for n in order
    ]
    return json.dumps({"events": events, "nextForwardToken": "f/1"}, indent=4)


def logcli(order):
    return "".join(f'{iso(n)} {{pod="vllm-0"}} {line(n)}\n' for n in order)


@pytest.mark.parametrize("newest_first", [False, True])
@pytest.mark.parametrize(
    "export",
    [
        *(grafana_json, grafana_csv, loki_answer, elastic_answer, logcli),
        *(journal_pretty, cloudwatch_answer),
    ],
)
def test_exports_give_their_lines_in_order(tmp_path, export, newest_first):
    path = tmp_path / "export.txt"
    path.write_text(export(range(15, 9, -1) if newest_first else range(10, 16)))
    evidence = parsers.read([str(path)])
    events = evidence.events
    assert events["kind"].to_list() == ["stats_periodic"] * 6
    rates = [json.loads(fields)["prompt_tps"] for fields in events["fields"]]
    assert rates == [10.0, 11.0, 12.0, 13.0, 14.0, 15.0]
    assert events["outer"].to_list() == [START + n + 0.5 for n in range(10, 16)]
    assert set(events["instance"]) == {"vllm-0"}
    assert evidence.coverage[0].matched == 6


@pytest.mark.parametrize("newest_first", [False, True])
def test_kibana_says_no_zone_but_the_order(tmp_path, newest_first):
    path = tmp_path / "export.csv"
    path.write_text(kibana_csv(range(15, 9, -1) if newest_first else range(10, 16)))
    events = parsers.read([str(path)]).events
    rates = [json.loads(fields)["prompt_tps"] for fields in events["fields"]]
    assert rates == [*range(10, 16)]


def test_offsets_of_a_log_that_runs_backwards_are_places_in_the_file(tmp_path):
    path = tmp_path / "logcli.txt"
    path.write_text(logcli(range(15, 9, -1)))
    events = parsers.read([str(path)]).events
    data = path.read_bytes()
    for offset, fields in events.select("offset", "fields").iter_rows():
        rate = f"prompt throughput: {json.loads(fields)['prompt_tps']:.1f} "
        assert rate.encode() in data[offset:].split(b"\n")[0]


@pytest.mark.parametrize("mark", ["", "> "])
@pytest.mark.parametrize("width", [80, 120])
def test_records_broken_at_the_width_of_a_terminal(tmp_path, width, mark):
    # Text as wide as the lines in characters, not in bytes.
    lines = ["INFO 05-12 08:01:09 [loggers.py:80] ▄▄ ▄█ █     █     █ ▀▄▀ █ ▄▄ ▄█" * 4, *LINES]
    broken = "".join(
        mark + text[at : at + width] + "\n" for text in lines for at in range(0, len(text), width)
    )
    path = tmp_path / "pasted.txt"
    path.write_text(broken)
    plain = tmp_path / "plain.txt"
    plain.write_text("".join(text + "\n" for text in LINES))
    columns = ["kind", "fields", "stamp", "engine"]
    assert (
        parsers.read([str(path)]).events.select(columns).rows()
        == parsers.read([str(plain)]).events.select(columns).rows()
    )


def test_records_that_a_mail_program_broke_between_words(tmp_path):
    path = tmp_path / "mail.txt"
    path.write_text("".join(f"> {part}\n" for text in LINES for part in textwrap.wrap(text, 72)))
    events = parsers.read([str(path)]).events
    assert events["kind"].to_list() == ["stats_periodic"] * 6
    assert [json.loads(fields)["prompt_tps"] for fields in events["fields"]] == [*range(10, 16)]


def test_one_record_that_a_terminal_broke(tmp_path):
    path = tmp_path / "pasted.txt"
    text = LINES[0]
    path.write_text("".join(f"{text[at : at + 100]}\n" for at in range(0, len(text), 100)))
    events = parsers.read([str(path)]).events
    assert events["kind"].to_list() == ["stats_periodic"]
    assert json.loads(events["fields"][0])["prefix_hit_rate_pct"] == 41.3


def test_lines_that_a_runtime_cut_are_not_taken_for_a_narrow_terminal(tmp_path):
    path = tmp_path / "cri.log"
    head = "2026-05-12T08:01:39.331095044Z stdout"
    path.write_text("".join(f"{head} P {text[:60]}\n{head} F {text[60:]}\n" for text in LINES))
    assert parsers.read([str(path)]).events["kind"].to_list() == ["stats_periodic"] * 6


def test_a_log_that_runs_backwards_without_a_wrapper_is_turned(tmp_path):
    path = tmp_path / "tac.log"
    path.write_text("".join(f"{text}\n" for text in reversed(LINES)))
    events = parsers.read([str(path)]).events
    rates = [json.loads(fields)["prompt_tps"] for fields in events["fields"]]
    assert rates == [*range(10, 16)]


def test_one_bad_byte_of_a_document_costs_one_entry(tmp_path):
    path = tmp_path / "export.json"
    path.write_bytes(grafana_json(range(10, 16)).encode().replace(b"57.3%", b"57.\xff%", 1))
    evidence = parsers.read([str(path)])
    assert evidence.events.filter(pl.col("kind") == "stats_periodic").height >= 5
    assert evidence.coverage[0].damaged == 0


def test_a_document_that_breaks_off_is_damage_not_a_crash(tmp_path):
    path = tmp_path / "export.json"
    path.write_text(grafana_json(range(10, 16))[:-40])
    evidence = parsers.read([str(path)])
    assert evidence.coverage[0].damaged == 1
    assert evidence.damages[0].reason == "a JSON document that breaks off"
    # Only the entry that is broken is lost.
    assert evidence.events.filter(pl.col("kind") == "stats_periodic").height == 5
