"""A release and engine generation → the queries that watch it, in the names that release exposes.

Counters exist under other names, or not at all, from release to release; the catalogue knows. Where
a release counts prompt tokens by source (0.16+), the hit rate comes from there: the lookup counters
of older V1 releases count a blocked request again at every step (vllm issue 43736).
"""

from dataclasses import dataclass

from forensics.catalog.metrics_catalog import Exposure, family
from forensics.catalog.versions import Generation, Version

# Lookups count full blocks up to 0.8.5 and tokens from 0.9.0 on (V1).
_COUNTS_TOKENS = Version((0, 9, 0))


@dataclass(frozen=True, slots=True)
class Queries:
    """Queries for one release; None where it exposes nothing to ask.

    Attributes:
        release / generation: what they are for.
        window: range of rates, as PromQL writes it ("2m").
        hit_rate: share of prompt tokens served from cache over the window.
        lookups: rate of prefix-cache lookups.
        preemptions: preemptions in the window.
        usage / running / waiting: gauges.
        prompt / generation_tokens: tokens per second.
        computed: prompt tokens computed per second.
        ttft_mean: seconds over the window.
        ttft_count / e2e_count: requests per second that got a first token, that ended.
    """

    release: Version
    generation: Generation
    window: str
    hit_rate: str | None
    lookups: str | None
    preemptions: str | None
    usage: str | None
    running: str
    waiting: str
    prompt: str | None
    generation_tokens: str | None
    computed: str | None
    ttft_mean: str | None
    ttft_count: str | None
    e2e_count: str | None
    ttft_buckets: str | None

    def residence(self, pool_tokens: int) -> str | None:
        """Ask how long a released block survives, at least: free tokens over tokens written."""
        if self.usage is None or self.computed is None or self.generation_tokens is None:
            return None
        written = f"({self.computed} + {self.generation_tokens})"
        return f"{pool_tokens} * (1 - {self.usage}) / ({written} > 0)"


def queries(release: Version, generation: Generation, window_s: float) -> Queries:
    """Write the queries for a release."""
    window = duration(window_s)
    exposed = _Exposed(release, generation, window)
    hits = exposed.rate("vllm:prefix_cache_hits", "vllm:gpu_prefix_cache_hits")
    lookups = exposed.rate("vllm:prefix_cache_queries", "vllm:gpu_prefix_cache_queries")
    prompt = exposed.rate("vllm:prompt_tokens")
    computed = prompt
    hit_rate = None
    if hits and lookups:
        hit_rate = f"{hits} / ({lookups} > 0)"
        if prompt and release >= _COUNTS_TOKENS:
            computed = f"({prompt} - {hits})"
    if prompt and exposed.name("vllm:prompt_tokens_by_source"):
        by_source = 'vllm:prompt_tokens_by_source_total{source="local_compute"}'
        computed = f"sum without(source) (rate({by_source}[{window}]))"
        hit_rate = f"1 - {computed} / ({prompt} > 0)"
    preempted = exposed.name("vllm:num_preemptions")
    ttft = exposed.name("vllm:time_to_first_token_seconds")
    e2e = exposed.name("vllm:e2e_request_latency_seconds")
    return Queries(
        release=release,
        generation=generation,
        window=window,
        hit_rate=hit_rate,
        lookups=lookups,
        preemptions=f"increase({preempted}[{window}])" if preempted else None,
        usage=exposed.name("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"),
        running="vllm:num_requests_running",
        waiting="vllm:num_requests_waiting",
        prompt=prompt,
        generation_tokens=exposed.rate("vllm:generation_tokens"),
        computed=computed,
        ttft_mean=(
            f"rate({ttft}_sum[{window}]) / (rate({ttft}_count[{window}]) > 0)" if ttft else None
        ),
        ttft_count=f"rate({ttft}_count[{window}])" if ttft else None,
        e2e_count=f"rate({e2e}_count[{window}])" if e2e else None,
        ttft_buckets=f"rate({ttft}_bucket[{window}])" if ttft else None,
    )


@dataclass(frozen=True, slots=True)
class _Exposed:
    release: Version
    generation: Generation
    window: str

    def name(self, *candidates: str) -> str | None:
        """Give the exposed name of the first family that this release shows."""
        for candidate in candidates:
            found = family(candidate)
            if found is None:
                continue
            if found.exposure(self.release, self.generation) is Exposure.VISIBLE:
                return found.exposed_name()
        return None

    def rate(self, *candidates: str) -> str | None:
        found = self.name(*candidates)
        return None if found is None else f"rate({found}[{self.window}])"


def duration(seconds: float) -> str:
    """Write a length of time as PromQL does, in whole seconds, minutes or hours.

    >>> duration(90), duration(120), duration(7200)
    ('90s', '2m', '2h')
    """
    whole = max(1, round(seconds))
    if whole % 3600 == 0:
        return f"{whole // 3600}h"
    return f"{whole // 60}m" if whole % 60 == 0 else f"{whole}s"
