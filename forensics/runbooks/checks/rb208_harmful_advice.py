"""Advice that makes the trouble worse.

## What it checks

Sentences that speak of KV cache pressure, preemption or a fallen hit rate and advise to lower
`--gpu-memory-utilization`, to raise `--max-num-seqs` or `--max-model-len`, to switch prefix
caching off, or to add swap space, in English and in Korean.

## Why it matters

A smaller memory share makes the KV pool smaller, a larger batch fills it sooner, and both deepen
the preemption that the runbook is meant to end. Advice of this kind usually comes from the
opposite case (out of memory at start-up), where it is right.

## Wrong

```markdown
When requests are preempted because the KV cache is full, lower `--gpu-memory-utilization` to 0.8.
```

## Right

```markdown
When requests are preempted because the KV cache is full, lower `--max-num-seqs`.
```

## When it is silent

Under headings and in paragraphs about out-of-memory errors, and in sentences with "do not".
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from forensics.runbooks.interface import Document, Prose, Remark, RunbookCheck

_PRESSURE = re.compile(
    r"preempt|kv.?cache (?:is )?(?:full|usage|pressure|exhaust|ran out)"
    r"|kv.?cache.{0,40}(?:full|high)|eviction|evicted|hit rate|cache pressure|usage_perc"
    r"|선점|프리엠션|프리엠|kv ?캐시.{0,20}(?:고갈|부족|가득|압박|사용률)"
    r"|축출|히트율|적중률|캐시 압박",
    re.IGNORECASE,
)
_OUT_OF_MEMORY = re.compile(
    r"out of memory|\boom\b|cuda error|start-?up fail|fails to start|free memory on device"
    r"|메모리 부족 오류|기동 실패|시작 실패",
    re.IGNORECASE,
)
_DOWN = (
    r"(?:lower|reduc|decreas|drop|shrink|cut|turn(?:ing)? down"
    r"|낮추|낮춘|낮춰|줄이|줄인|줄여|감소|내린|내려|내리)"
)
_UP = (
    r"(?:rais|increas|bump|enlarg|grow|turn(?:ing)? up|doubl|set.{0,20}higher"
    r"|높이|높인|높여|늘리|늘린|늘려|올린|올리|올려|증가|키운|키워|키우)"
)
_OFF = r"(?:disabl|turn(?:ing)? off|switch(?:ing)? off|끄|끈다|끕니다|비활성)"
_NOT = re.compile(
    r"\b(?:do not|don't|never|not to|avoid|instead of|rather than|must not|should not|no need)\b"
    r"|지 마|지 말|않|금지|대신|하지 않는다|효과가 없",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Advice:
    """A bad piece of advice: what is to be moved, which way, and why that is wrong."""

    subject: re.Pattern[str]
    verb: re.Pattern[str]
    why: str


def _advice(subject: str, verb: str, why: str) -> _Advice:
    return _Advice(re.compile(subject, re.I), re.compile(verb, re.I), why)


_ADVICE = (
    _advice(
        r"(?:--)?gpu[-_ ]memory[-_ ]utili[sz]ation",
        _DOWN,
        "A lower memory share makes the KV pool smaller and the pressure higher.",
    ),
    _advice(
        r"(?:--)?max[-_]num[-_]seqs",
        _UP,
        "More running requests fill the pool sooner: under pressure the limit goes down, not up.",
    ),
    _advice(
        r"(?:--)?max[-_]model[-_]len",
        _UP,
        "A longer limit lets longer requests into a pool that is already too small.",
    ),
    _advice(
        r"(?:--)?enable[-_]prefix[-_]caching|prefix caching|프리픽스 캐싱|프리픽스 캐시",
        _OFF,
        "Cached blocks that nobody uses count as free: without the cache the same prompts are "
        "computed again and the pool is no larger.",
    ),
    _advice(
        r"(?:--)?swap[-_ ]space|스왑 공간",
        _UP,
        "V1 never swaps, and on V0 swapping moves the same blocks over the bus.",
    ),
)


def look(document: Document) -> Iterator[Remark]:
    """Yield a remark for each bad piece of advice."""
    for line in document.prose:
        if not _PRESSURE.search(line.topic) and not _PRESSURE.search(line.text.text):
            continue
        if _OUT_OF_MEMORY.search(line.topic):
            continue
        yield from _of_line(line)


def _of_line(line: Prose) -> Iterator[Remark]:
    text = line.text.text
    for start, end in _sentences(text):
        sentence = text[start:end]
        if _NOT.search(sentence):
            continue
        for advice in _ADVICE:
            subject = advice.subject.search(sentence)
            if subject is None:
                continue
            verb = _nearest(advice.verb, sentence, subject)
            if verb is not None:
                low = min(subject.start(), verb.start())
                high = max(subject.end(), verb.end())
                yield Remark(*line.text.place(start + low, start + high), advice.why)


def _nearest(verb: re.Pattern[str], sentence: str, subject: re.Match[str]) -> re.Match[str] | None:
    """The verb that belongs to a subject: in one clause with it."""
    for match in verb.finditer(sentence):
        between = sentence[min(match.end(), subject.end()) : max(match.start(), subject.start())]
        if not re.search(r"[;,]|\b(?:and|or|but|then)\b|하고|거나", between) and len(between) < 60:
            return match
    return None


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for match in re.finditer(r"[.!?。](?=\s|$)", text):
        yield start, match.end()
        start = match.end()
    if text[start:].strip():
        yield start, len(text)


CHECK = RunbookCheck("RB208", "harmful-advice", "warning", look, __doc__)
