"""One hand-made analysis with the figures of a recorded preemption cliff (vLLM 0.32.0, CPU).

860 blocks of 32 tokens; hit rate 0.797 → 0.52, usage → 0.99, 574 preemptions, TTFT 33 ms → 4.4 s.
Some texts in it are hostile on purpose: they stand where input text can stand.
"""

import math
from dataclasses import replace

import pytest

from forensics import analysis as a
from forensics.catalog import messages
from forensics.catalog.messages import Message
from forensics.ceiling.records import Bound, Ceiling, GapRow, Input, Limit
from forensics.coverage import KindBytes
from forensics.verdict import Contribution, RunnerUp, Verdict

T0 = 1795973505.0  # 2026-11-29T17:31:45Z
ONSET = (T0 + 64.0, T0 + 80.0)
END = T0 + 150.0

SENTENCES = {
    "en": {
        "test.summary": "The KV pool of engine {engine} ran out: hit rate fell from {before:pct} to"
        " {after:pct} while {count:num} preemptions were counted.",
        "test.shed": "Lower the batch limit to {limit:num} and shed what is above it.",
        "test.effect": "Preemptions go to about 0; the hit rate does not come back by this alone.",
        "test.decide": "Send one unique prompt twice, {gap:dur} apart, and read cached_tokens.",
        "test.usage": "usage at {usage:pct}: no free block left",
        "test.stable": "the prompts of clients did not change",
        "test.note": "max_num_seqs alone does not restore hits.",
        "test.refused": "No latency target was given.",
        "test.weighed": "Named by {label}.",
    },
    "ko": {
        "test.summary": "엔진 {engine}의 KV 풀이 소진되었습니다: 적중률이 {before:pct}에서"
        " {after:pct}로 떨어졌고 선점 {count:num}회가 집계되었습니다.",
        "test.shed": "배치 한도를 {limit:num}로 낮추고 초과분은 거부하십시오.",
        "test.effect": "선점은 거의 0이 되지만 이것만으로 적중률이 돌아오지는 않습니다.",
        "test.decide": "같은 프롬프트를 {gap:dur} 간격으로 두 번 보내 보십시오.",
        "test.usage": "사용률 {usage:pct}: 빈 블록이 없습니다",
        "test.stable": "클라이언트의 프롬프트는 바뀌지 않았습니다",
        "test.note": "max_num_seqs만으로는 적중이 돌아오지 않습니다.",
        "test.refused": "지연 시간 목표가 주어지지 않았습니다.",
        "test.weighed": "{label}이(가) 지목했습니다.",
    },
}


@pytest.fixture(autouse=True)
def sentences(monkeypatch):
    shipped = messages.catalogue

    def with_test_sentences(lang):
        return {**shipped(lang), **SENTENCES[lang]}

    monkeypatch.setattr(messages, "catalogue", with_test_sentences)


@pytest.fixture
def hostile():
    """Text as an attacker puts it into a label: markup, terminal escapes, bidi override."""
    return "<script>alert(1)</script>\x1b[31mred\x07 \u202egnp.exe | `x` @team"


@pytest.fixture
def analysis(hostile):
    return incident(hostile)


@pytest.fixture
def healthy():
    return calm()


def ramp(first, last, middle, times):
    """Go from one level to another around `middle`, with a width of 6 s."""
    return tuple(
        round(first + (last - first) / (1 + math.exp(-(t - middle) / 6.0)), 4) for t in times
    )


def tracks(engine="0", *, broken=True):
    times = tuple(T0 + 2.0 * i for i in range(76))
    middle = T0 + 72.0 if broken else T0 + 4000.0
    hits = list(ramp(0.797, 0.52, middle, times))
    hits[20] = None
    burst = ramp(0, 28, middle + 14, times)
    signals = {
        "hit_rate": a.Track(times, tuple(hits)),
        "kv_usage": a.Track(times, ramp(0.05, 0.99, middle, times)),
        "preemptions": a.Track(times, tuple(float(round(x)) for x in burst)),
        "running": a.Track(times, ramp(4, 78, middle, times)),
        "waiting": a.Track(times, ramp(0, 31, middle + 6, times)),
        "ttft_s": a.Track(times, ramp(0.033, 4.4, middle + 4, times)),
        "logged_hit_rate": a.Track(times[::5], ramp(0.79, 0.63, middle + 30, times[::5]), "log"),
    }
    marks = (a.MarkView(T0, "start", "engine started", a.Where("server.log", line=44)),)
    episodes = ((ONSET[1], END, "hit_rate"),) if broken else ()
    return a.EngineTracks(engine, 2.0, signals, marks, episodes)


def ceiling():
    pool = Input(27520.0, "tokens", "server.log:44")
    slope = Input(312.0, "tokens", "usage × pool against running, 41 scrapes")
    return Ceiling(
        engine="0",
        gpu="CPU",
        model="tiny-llama",
        max_num_seqs=Limit(72.0, 66.0, 79.0),
        current=128,
        admission_limit=Limit(61.0, 40.0, 85.0),
        binding_bound="B_safe",
        bounds=(
            Bound(
                "B_safe",
                72.0,
                66.0,
                79.0,
                "((-z·s + sqrt(z²·s² + 4·m·N)) / (2·m))²",
                {"N": pool, "m": slope},
                ("N = 860 blocks × 32 tokens = 27,520 tokens", "B_safe = 72"),
            ),
            Bound(
                "B_exh", 88.0, 84.0, 92.0, "N / m", {"N": pool, "m": slope}, ("27,520 / 312 = 88",)
            ),
            Bound("C_keep", 61.0, 40.0, 85.0, "fixed point of 5.2", {"N": pool}, (), "live"),
            Bound(
                "B_slo", None, None, None, "(t_slo - t0) / slope", refused=Message("test.refused")
            ),
        ),
        gap_table=(GapRow(5.0, 120.0), GapRow(60.0, 61.0)),
        confidence="medium",
        notes=(Message("test.note"),),
    )


def incident(hostile):
    usage = a.Evidenced(
        "kv_usage",
        0.041,
        0.993,
        "ratio",
        a.Where("metrics/query_range.json", series="vllm:kv_cache_usage_perc", time=T0 + 80),
        Message("test.usage", {"usage": 0.993}),
    )
    line = a.Evidenced(
        "running",
        4.0,
        61.0,
        "requests",
        a.Where("server.log", line=1204, text=f"Running: 61 reqs, Waiting: 33 reqs {hostile}"),
    )
    hits = a.Evidenced(
        "hit_rate",
        0.797,
        0.52,
        "ratio",
        a.Where("metrics/query_range.json", series=f'vllm:x{{pod="{hostile}"}}', time=T0 + 82),
    )
    summary = Message("test.summary", {"engine": "0", "before": 0.797, "after": 0.52, "count": 574})
    finding = a.Finding(
        "PC101",
        "preemption-cliff",
        "critical",
        0.93,
        "0",
        ONSET,
        None,
        summary,
        share=0.71,
        exhibits=(hits, usage, line),
        against=(a.Evidenced("prompt_len", 322.0, 318.0, "tokens", None, Message("test.stable")),),
        actions=(
            a.Advice(
                Message("test.shed", {"limit": 72}), Message("test.effect"), "--max-num-seqs 72"
            ),
        ),
        would_decide=Message("test.decide", {"gap": 60.0}),
    )
    second = replace(
        finding,
        rule_id="PC102",
        cause="eviction-pressure",
        severity="warning",
        confidence=0.44,
        share=0.24,
        exhibits=(usage,),
        against=(),
        actions=(),
    )
    config = {"max_num_seqs": 128, "enable_prefix_caching": True, "max_model_len": 2048}
    epoch = a.EpochView(
        T0,
        None,
        "0.32.0",
        "V1",
        "tiny-llama",
        a.GpuView("CPU", (), None, "server.log:42"),
        {**config, "kv_cache_dtype": None},
        a.PoolView(27520, 860, 32, "server.log:44"),
    )
    return a.Analysis(
        tool_version="0.1.0",
        window=(T0, END),
        verdict=Verdict(
            "preemption-cliff",
            0.93,
            "0",
            ONSET,
            None,
            summary,
            (Contribution("eviction-pressure", 0.24),),
            RunnerUp("prefix-diversity-loss", 0.05, Message("test.decide", {"gap": 60.0})),
            (),
            ("vllm:kv_block_reuse_gap_seconds",),
        ),
        findings=(finding, second),
        decompositions=(
            a.Decomposition(
                "0",
                0,
                ONSET,
                0.797,
                0.52,
                (
                    a.Share("diversity", 0.01, -0.02, 0.05),
                    a.Share("capacity", 0.267, 0.22, 0.29),
                    a.Share("cold", 0.0, 0.0, 0.0),
                    a.Share("counting", 0.0, 0.0, 0.01),
                ),
                True,
                "score",
            ),
        ),
        impact=a.Impact(
            409.0,
            a.BeforeAfter(0.033, 4.4),
            a.BeforeAfter(0.856, 15.1),
            a.BeforeAfter(375.2, 1836.3),
            {"queue": a.BeforeAfter(0.0, 3.9), "decode": a.BeforeAfter(0.82, 10.7)},
            1.2,
        ),
        engines=(a.EngineView("0", hostile, (epoch,)),),
        ceilings=(ceiling(),),
        sweep=None,
        clocks=(
            a.ClockView(
                "server.log", 0.0, "UTC", 2026, "matched", "running agrees in 18 of 18 lines"
            ),
        ),
        tracks=(tracks(),),
        files=(
            a.FileView(
                "server.log",
                "vllm_log",
                120_034,
                1318,
                1204,
                100,
                13,
                1,
                KindBytes(110_000, 9_000, 990, 44),
                0,
                ((f"weird line N {hostile}", 9),),
                ((77, "cut in the middle of a record"),),
                None,
            ),
            a.FileView(
                "metrics/query_range.json",
                "query_json",
                2_410_334,
                0,
                0,
                0,
                0,
                0,
                None,
                18_220,
                (),
                (),
                None,
            ),
        ),
        not_evaluated=(a.NotEvaluated("SCH304", "0", ("more than one engine",)),),
        weighed=(
            a.Weighed(
                "PC101",
                "preemption-cliff",
                "0",
                0.93,
                "primary",
                Message("test.weighed", {"label": hostile}),
            ),
            a.Weighed(
                "PC102",
                "eviction-pressure",
                "0",
                0.44,
                "contributing",
                Message("test.weighed", {"label": "capacity"}),
            ),
        ),
        reproduce="forensics analyze server.log metrics/",
    )


def calm():
    return a.Analysis(
        tool_version="0.1.0",
        window=(T0, END),
        verdict=Verdict("healthy", 0.97, None, None, None, Message("test.stable")),
        findings=(),
        decompositions=(),
        impact=a.Impact(),
        engines=(),
        ceilings=(),
        sweep=None,
        clocks=(),
        tracks=(tracks(broken=False),),
        files=(),
        not_evaluated=(),
    )
