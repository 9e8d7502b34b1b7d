"""What the operator asked for, as one record that travels through the pipeline."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Options:
    """Options of an analysis; the command line and the library fill the same record.

    Attributes:
        since / until: UTC seconds that bound what is judged; None for no bound.
        since_end_s: judge only this many seconds before the end of the data; None for all.
        tz: IANA zone or ±HH:MM of the log clock, when the operator knows it.
        gpu: GPU name as the operator states it; wins over anything detected.
        model: model name, or path of a ``config.json``; wins over anything detected.
        slo_ttft_s / slo_itl_s: latency targets in seconds.
        vllm_version: version to assume where the evidence states none.
        include_prompts: allow prompt text in reports.
        anonymize: replace hosts, addresses, request ids and model paths consistently.
        confidential: leave log text and names out of reports.
    """

    since: float | None = None
    until: float | None = None
    since_end_s: float | None = None
    tz: str | None = None
    gpu: str | None = None
    model: str | None = None
    slo_ttft_s: float | None = None
    slo_itl_s: float | None = None
    vllm_version: str | None = None
    include_prompts: bool = False
    anonymize: bool = False
    confidential: bool = False
