"""The rules in promtool: they parse, fire on the recording they are for, and are silent else."""

import json
import re
import shutil
import subprocess
from dataclasses import replace
from itertools import pairwise

import pytest
import yaml

from forensics import analyze
from forensics.catalog.metrics_catalog import Exposure, sample
from forensics.catalog.versions import version
from forensics.errors import InputError
from forensics.reports import alerts, dashboard, promql, tuning

PROMTOOL = shutil.which("promtool")
needs_promtool = pytest.mark.skipif(
    PROMTOOL is None, reason="promtool is not installed (Debian: prometheus)"
)


def promtool(*arguments):
    return subprocess.run([PROMTOOL, *arguments], capture_output=True, text=True, check=False)


def series_of(recording, rules):
    """The series of a recording that the rules ask for, as Prometheus answered them."""
    names = set(re.findall(r"vllm:\w+", rules))
    folder = recording / "metrics"
    files = [folder / "query_range.json", *sorted((folder / "query_range").glob("*.json"))]
    found = {}
    for file in files:
        if not file.is_file():
            continue
        for one in json.loads(file.read_text())["data"]["result"]:
            if one["metric"].get("__name__") in names:
                found[json.dumps(one["metric"], sort_keys=True)] = one
    return list(found.values())


def played(recording, rules, asked, expected, folder):
    """Play a recording to the rules, then ask for the alerts that fired by its end."""
    series = series_of(recording, rules)
    assert series, "the rules ask for something that the recording has"
    first = min(float(one["values"][0][0]) for one in series)
    last = max(float(one["values"][-1][0]) for one in series)
    times = series[0]["values"]
    step = round(min(float(b[0]) - float(a[0]) for a, b in pairwise(times)))
    inputs = []
    for one in series:
        labels = {name: value for name, value in one["metric"].items() if name != "__name__"}
        at = {round((float(t) - first) / step): v for t, v in one["values"]}
        inner = ",".join(f'{name}="{value}"' for name, value in sorted(labels.items()))
        points = " ".join(at.get(n, "_") for n in range(round((last - first) / step) + 1))
        inputs.append({"series": f"{one['metric']['__name__']}{{{inner}}}", "values": points})
    question = {
        "expr": asked,
        "eval_time": f"{round(last - first)}s",
        "exp_samples": [{"labels": labels, "value": 1} for labels in expected],
    }
    test = {
        "rule_files": ["rules.yml"],
        "evaluation_interval": f"{step}s",
        "tests": [{"interval": f"{step}s", "input_series": inputs, "promql_expr_test": [question]}],
    }
    (folder / "rules.yml").write_text(rules, encoding="utf-8")
    (folder / "test.yml").write_text(yaml.safe_dump(test), encoding="utf-8")
    return promtool("test", "rules", str(folder / "test.yml"))


# Those that Prometheus recorded and whose verdict is a cause; with the release of the names.
INCIDENTS = (
    "b-preemption-cliff-v032",
    "b-preemption-cliff-v0112",
    "c-diversity-loss-v032",
    "c-diversity-loss-v0112",
    "f-queueing-v032",
    "g-mixed-v032",
    "g2-mixed-diversity-hides-preemption-v032",
    "h2-concurrency-sweep-v032",
    "i-client-aborts-v032",
    "j-prefix-caching-off-v032",
    "k-long-context-v032",
    "l-preemption-cliff-tz-v032",
)


@pytest.fixture(scope="module")
def judged(corpus):
    """Analyse a recording once."""
    known = {}

    def analysis_of(name):
        if name not in known:
            folder = corpus / name
            known[name] = analyze([str(folder / "server.log"), str(folder / "metrics")])
        return known[name]

    return analysis_of


@needs_promtool
@pytest.mark.prometheus
@pytest.mark.parametrize("lang", ["en", "ko"])
def test_rules_parse(analysis, healthy, tmp_path, lang):
    for name, one in (("incident", analysis), ("healthy", healthy)):
        path = tmp_path / f"{name}.yml"
        path.write_text(alerts.render(one, lang), encoding="utf-8")
        done = promtool("check", "rules", str(path))
        assert done.returncode == 0, done.stdout + done.stderr


@needs_promtool
@pytest.mark.prometheus
@pytest.mark.slow
@pytest.mark.parametrize("name", INCIDENTS)
def test_rules_for_the_diagnosed_cause_fire_on_the_incident(judged, corpus, tmp_path, name):
    one = judged(name)
    rules = alerts.render(one)
    fired = f'max_over_time(ALERTS{{alertstate="firing",causes=~".*{one.verdict.cause}.*"}}[2h])'
    done = played(corpus / name, rules, f"clamp_max(count({fired}), 1)", ["{}"], tmp_path)
    assert done.returncode == 0, one.verdict.cause + done.stdout + done.stderr


@needs_promtool
@pytest.mark.prometheus
@pytest.mark.slow
@pytest.mark.parametrize("name", [*INCIDENTS, "a-healthy-v032"])
def test_rules_are_silent_on_the_healthy_recording(judged, corpus, tmp_path, name):
    rules = alerts.render(judged(name))
    fired = 'count by (alertname) (max_over_time(ALERTS{alertstate="firing"}[2h]))'
    if "v0112" in name:
        rules = alerts.render(as_release(judged(name), judged("a-healthy-v032")))
    done = played(corpus / "a-healthy-v032", rules, fired, [], tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def as_release(one, other):
    """The same deployment in the release of another: the healthy recording has but one."""
    version_of = other.engines[0].epochs[-1].vllm_version
    engines = tuple(
        replace(view, epochs=tuple(replace(e, vllm_version=version_of) for e in view.epochs))
        for view in one.engines
    )
    return replace(one, engines=engines)


def test_a_rule_names_the_causes_it_stands_for(analysis):
    made = {rule.name: rule.causes for rule in alerts.rules(analysis)}
    assert "preemption-cliff" in made["VllmPreemption"]
    assert "eviction-pressure" in made["VllmHitRateLow"]


def test_levels_lie_between_before_and_after(analysis):
    levels = tuning.tuning(analysis)
    assert levels.hit_rate.usual == pytest.approx(0.797, abs=0.001)
    assert levels.hit_rate.line == 0.658
    assert levels.ttft_s.usual == pytest.approx(0.036, abs=0.003)
    assert levels.ttft_s.line == pytest.approx((levels.ttft_s.usual * 4.4) ** 0.5, rel=0.01)
    assert (levels.step_s, levels.window_s, levels.hold_s) == (2.0, 16.0, 6.0)
    assert (levels.limit, levels.seats, levels.pool_tokens) == (72, 128, 27520)


@pytest.mark.parametrize(
    ("release", "generation"),
    [
        ("0.6.6", "V0"),
        ("0.8.5", "V0"),
        ("0.8.5", "V1"),
        ("0.9.0", "V1"),
        ("0.9.2", "V1"),
        ("0.11.2", "V1"),
        ("0.16.0", "V1"),
        ("0.33.0", "V1"),
    ],
)
def test_every_name_is_exposed_by_that_release(release, generation):
    release = version(release)
    ask = promql.queries(release, generation, 120.0)
    texts = [
        getattr(ask, name)
        for name in ask.__dataclass_fields__
        if name not in ("release", "generation", "window")
    ]
    for text in filter(None, [*texts, ask.residence(1000)]):
        for name in set(re.findall(r"vllm:\w+", text)):
            found = sample(name)
            assert found is not None, name
            assert found.family.exposure(release, generation) is Exposure.VISIBLE, name


@pytest.mark.parametrize(
    ("release", "generation", "expected"),
    [
        ("0.8.5", "V1", "rate(vllm:gpu_prefix_cache_hits_total[2m])"),
        ("0.11.2", "V1", "rate(vllm:prefix_cache_hits_total[2m])"),
        ("0.32.0", "V1", 'rate(vllm:prompt_tokens_by_source_total{source="local_compute"}[2m])'),
    ],
)
def test_hit_rate_in_the_names_of_the_release(release, generation, expected):
    assert expected in promql.queries(version(release), generation, 120.0).hit_rate


def test_v0_has_no_hit_counters():
    assert promql.queries(version("0.8.5"), "V0", 120.0).hit_rate is None


def test_without_a_timeline_there_is_nothing_to_tune(analysis):
    with pytest.raises(InputError, match="no timeline"):
        alerts.render(replace(analysis, tracks=()))


@pytest.mark.parametrize("lang", ["en", "ko"])
def test_dashboard_shows_the_same_signals(analysis, lang):
    board = json.loads(dashboard.render(analysis, lang))
    assert board["schemaVersion"] == 39
    assert len(board["panels"]) == 7
    hit = board["panels"][0]
    assert hit["fieldConfig"]["defaults"]["thresholds"]["steps"][1]["value"] == 0.658
    places = [(p["gridPos"]["x"], p["gridPos"]["y"]) for p in board["panels"]]
    assert len(set(places)) == len(places)


def test_dashboard_queries_parse(analysis):
    import promql_parser

    for panel in json.loads(dashboard.render(analysis))["panels"]:
        for target in panel["targets"]:
            promql_parser.parse(target["expr"])


@needs_promtool
@pytest.mark.prometheus
def test_the_measuring_itself(judged, corpus, tmp_path):
    """A silent rule is seen as silent, a firing one as firing: the two tests above can fail."""
    recording = corpus / "b-preemption-cliff-v032"
    rules = alerts.render(judged(recording.name))
    fired = 'count by (alertname) (max_over_time(ALERTS{alertstate="firing"}[2h]))'
    assert played(recording, rules, fired, [], tmp_path).returncode != 0
    never = 'clamp_max(count(ALERTS{causes=~".*seat-limit-of-nothing.*"}), 1)'
    assert played(recording, rules, never, ["{}"], tmp_path).returncode != 0
