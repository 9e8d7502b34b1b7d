"""A small server that leaves behind what a real one does: its log and a Prometheus dump.

A scenario says level by level what the server was doing; `write` turns it into a log in the
line shapes of vLLM 0.21 and a ``query_range`` answer with the metric names of that release. Every
request is counted the way that release counts it: prompts by source, lookups at admission. Log and
dump are made by one module, since they must tell the same story.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

T0 = 1_795_939_200.0  # 2026-11-29 08:00:00 UTC
_BUCKETS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0, 5000.0, 10000.0)
_LEVELS = {
    "requests": 4.0,  # finished per second
    "prompt": 1000.0,  # tokens per request
    "output": 200.0,  # tokens per request
    "hit": 0.7,  # share of prompt tokens found in the cache
    "running": 16.0,
    "waiting": 0.0,
    "usage": 0.1,
    "preempted": 0.0,  # per second
    "unfinished": 0.0,  # per second: first token, but no end (the client went away)
    "rejected": 0.0,  # per second
    "ttft": 0.2,
    "itl": 0.02,
    "queue": 0.001,
    "prefill": 0.15,
    "lookups": 1.0,  # per prompt token
}


@dataclass
class Server:
    """One engine's life; times in seconds since the beginning of the recording."""

    folder: Path
    seconds: float = 1200.0
    step: float = 5.0
    noise: float = 0.03
    hit_noise: float = 0.02
    version: str = "0.21.0"
    model: str = "meta-llama/Llama-3.1-8B-Instruct"
    blocks: int = 28125
    block_size: int = 16
    max_num_seqs: int = 256
    max_model_len: int = 8192
    prefix_caching: bool = True
    engine: str = "0"
    seed: int = 1
    flags: dict[str, object] = field(default_factory=dict)
    extra: list[tuple[float, str]] = field(default_factory=list)
    restarts: list[tuple[float, float, dict[str, object]]] = field(default_factory=list)
    levels: dict[str, np.ndarray] = field(default_factory=dict)
    t0: float = T0

    def __post_init__(self) -> None:
        self.times = np.arange(0.0, self.seconds + self.step / 2, self.step)
        self.levels = {name: np.full(self.times.size, v) for name, v in _LEVELS.items()}

    def during(self, start: float, end: float, **levels: float | tuple[float, float]) -> "Server":
        """Set levels in (start, end]; a pair is a ramp."""
        inside = (self.times > start) & (self.times <= end)
        for name, value in levels.items():
            if isinstance(value, tuple):
                self.levels[name][inside] = np.linspace(*value, int(inside.sum()))
            else:
                self.levels[name][inside] = value
        return self

    def always(self, **levels: float) -> "Server":
        """Set levels for the whole recording."""
        return self.during(-1.0, self.seconds + 1, **levels)

    def line(self, at: float, text: str, process: str = "APIServer") -> "Server":
        """Add a line of the server's own format; `text` is ``LEVEL [file:line] message``."""
        self.extra.append((at, self._vllm(at, text, process)))
        return self

    @property
    def by_source(self) -> bool:
        """Tell whether the release counts prompt tokens by source (0.16 and later)."""
        return self._from(0, 16)

    def _from(self, *release: int) -> bool:
        return tuple(int(part) for part in self.version.split(".")) >= release

    def _vllm(self, at: float, text: str, process: str = "APIServer") -> str:
        level, _, rest = text.partition(" ")
        # The process stands in front of each line from 0.10.1 on.
        process = f"({process} pid=1) " if self.by_source else ""
        return f"{process}{level} {_stamp(at)} {rest}"

    def access(self, at: float, path: str, status: str, method: str = "POST") -> "Server":
        """Add an access line, which carries no stamp of its own."""
        self.extra.append(
            (
                at,
                f'(APIServer pid=1) INFO:     10.0.0.7:41000 - "{method} {path} HTTP/1.1" {status}',
            )
        )
        return self

    def restart(self, at: float, down: float, **changed: object) -> "Server":
        """Stop the process at a time and have it serve again `down` seconds later."""
        self.restarts.append((at, down, changed))
        return self

    # -- what is left behind -------------------------------------------------------------------

    def write(self, *, log: bool = True, metrics: bool = True, stamped: bool = False) -> str:
        """Write the files and name the folder; `stamped` puts a container's stamp on each line."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if log:
            lines = sorted([*self._log(), *self.extra], key=lambda pair: pair[0])
            text = "".join(
                f"{_rfc3339(at)} stdout F {line}\n" if stamped else f"{line}\n"
                for at, line in lines
            )
            (self.folder / f"server-{self.engine}.log").write_text(text, encoding="utf-8")
        if metrics:
            document = {
                "status": "success",
                "data": {"resultType": "matrix", "result": list(self._series())},
            }
            path = self.folder / f"query_range-{self.engine}.json"
            path.write_text(json.dumps(document), encoding="utf-8")
        return str(self.folder)

    def _up(self) -> np.ndarray:
        """Tell which scrapes found the server; shape (n,)."""
        up = np.ones(self.times.size, dtype=bool)
        for at, down, _ in self.restarts:
            up &= ~((self.times > at) & (self.times <= at + down))
        return up

    def _amounts(self) -> dict[str, np.ndarray]:
        """Give what each counter grows by per step."""
        rng = np.random.default_rng(self.seed)
        wobble = 1.0 + rng.normal(0.0, self.noise, self.times.size)
        level = self.levels
        up = self._up()
        ended = np.maximum(level["requests"] * self.step * wobble, 0.0) * up
        # What begins to answer either ends, still runs at the end of the step, or was given up.
        more = np.diff(level["running"], prepend=level["running"][0])
        ended = np.maximum(ended, -more * up)
        begun = ended + (more + level["unfinished"] * self.step) * up
        noisy = level["hit"] + rng.normal(0.0, self.hit_noise, self.times.size)
        hit = np.where(level["hit"] > 0, np.clip(noisy, 0.0, 1.0), 0.0)
        prompt = begun * level["prompt"]
        cached = prompt * hit if self.prefix_caching else np.zeros_like(prompt)
        e2e = level["ttft"] + level["output"] * level["itl"]
        sources = {
            'vllm:prompt_tokens_by_source_total{source="local_cache_hit"}': cached,
            'vllm:prompt_tokens_by_source_total{source="local_compute"}': prompt - cached,
        }
        refused = {
            'vllm:admission_rejections_total{reason="max_num_queued_reqs"}': (
                level["rejected"] * self.step * up
            )
        }
        # The name changed in 0.10.2.
        token = "inter_token_latency" if self.by_source else "time_per_output_token"
        return {
            "vllm:prompt_tokens_total": prompt,
            **(sources if self.by_source else {}),
            **(refused if self._from(0, 32) else {}),
            "vllm:prefix_cache_queries_total": prompt * level["lookups"] * self.prefix_caching,
            "vllm:prefix_cache_hits_total": cached * level["lookups"],
            "vllm:generation_tokens_total": ended * level["output"],
            "vllm:num_preemptions_total": level["preempted"] * self.step * up,
            'vllm:request_success_total{finished_reason="stop"}': ended,
            'vllm:request_success_total{finished_reason="abort"}': 0.0 * ended,
            "vllm:time_to_first_token_seconds_sum": begun * level["ttft"],
            "vllm:time_to_first_token_seconds_count": begun,
            "vllm:e2e_request_latency_seconds_sum": ended * e2e,
            "vllm:e2e_request_latency_seconds_count": ended,
            "vllm:request_queue_time_seconds_sum": ended * level["queue"],
            "vllm:request_queue_time_seconds_count": ended,
            "vllm:request_prefill_time_seconds_sum": ended * level["prefill"],
            "vllm:request_prefill_time_seconds_count": ended,
            "vllm:request_decode_time_seconds_sum": ended * level["output"] * level["itl"],
            "vllm:request_decode_time_seconds_count": ended,
            f"vllm:{token}_seconds_sum": ended * level["output"] * level["itl"],
            f"vllm:{token}_seconds_count": ended * level["output"],
            "vllm:request_prompt_tokens_sum": ended * level["prompt"],
            "vllm:request_prompt_tokens_count": ended,
        }

    def _series(self) -> Iterator[dict[str, object]]:
        up = self._up()
        for name, grown in self._amounts().items():
            yield self._one(name, self._counted(grown), up)
        lengths = self._amounts()["vllm:request_prompt_tokens_count"]
        for edge in (*_BUCKETS, np.inf):
            inside = np.where(self.levels["prompt"] * 1.0 <= edge, lengths, 0.0)
            label = "+Inf" if np.isinf(edge) else str(edge)
            yield self._one(
                f'vllm:request_prompt_tokens_bucket{{le="{label}"}}', self._counted(inside), up
            )
        for name, level in (
            ("vllm:num_requests_running", "running"),
            ("vllm:num_requests_waiting", "waiting"),
            ("vllm:kv_cache_usage_perc", "usage"),
        ):
            values = self.levels[level]
            yield self._one(name, np.round(values) if level != "usage" else values, up)
        started = np.full(self.times.size, T0 - 3600.0)
        info = np.ones(self.times.size)
        for at, down, _ in self.restarts:
            started[self.times > at] = T0 + at + 0.3 * down
        yield self._one("process_start_time_seconds", started, up)
        for begin, end, size in self._pools():
            there = up & (self.times > begin) & (self.times <= end)
            yield self._one(
                f'vllm:cache_config_info{{block_size="{self.block_size}",'
                f'enable_prefix_caching="{self.prefix_caching}",num_gpu_blocks="{size}"}}',
                info,
                there,
            )

    def _pools(self) -> list[tuple[float, float, int]]:
        bounds, sizes = [-1.0], [self.blocks]
        for at, down, changed in self.restarts:
            bounds.append(at + down)
            sizes.append(int(str(changed.get("blocks", sizes[-1]))))
        return list(zip(bounds, [*bounds[1:], self.seconds + 1], sizes, strict=True))

    def _counted(self, grown: np.ndarray) -> np.ndarray:
        """Add up a counter from where an hour of life had brought it; a restart begins at zero."""
        total = np.cumsum(grown) + 700.0 * float(grown[0])
        for at, _, _ in self.restarts:
            after = self.times > at
            total[after] = np.cumsum(np.where(after, grown, 0.0))[after]
        return total

    def _one(self, name: str, values: np.ndarray, there: np.ndarray) -> dict[str, object]:
        base, _, rest = name.partition("{")
        labels = {"__name__": base, "instance": "10.0.0.5:8000", "job": "vllm"}
        if base.startswith("vllm:"):
            labels |= {"model_name": self.model, "engine": self.engine}
        for pair in rest.rstrip("}").split(",") if rest else []:
            key, _, value = pair.partition("=")
            labels[key] = value.strip('"')
        points = [
            [T0 + float(t), f"{float(v):.12g}" if v % 1 else str(int(v))]
            for t, v, ok in zip(self.times, values, there, strict=True)
            if ok
        ]
        return {"metric": labels, "values": points}

    def _log(self) -> Iterator[tuple[float, str]]:
        yield from self._start(-90.0, self.blocks, {})
        for at, down, changed in self.restarts:
            text = "INFO [launcher.py:110] Shutting down FastAPI HTTP server."
            yield at, self._vllm(at, text)
            blocks = int(str(changed.get("blocks", self.blocks)))
            yield from self._start(at + 0.3 * down, blocks, changed)
        amounts = self._amounts()
        prompt = amounts["vllm:prompt_tokens_total"]
        if self.by_source:  # from 0.16 on only computed tokens are printed
            prompt = amounts['vllm:prompt_tokens_by_source_total{source="local_compute"}']
        generated = amounts["vllm:generation_tokens_total"]
        rates_printed = self._printed_rates(amounts)
        per_line = max(1, round(10.0 / self.step))
        up = self._up()
        before = (1.0, 1.0)
        for index in range(per_line, self.times.size, per_line):
            if not up[index]:
                continue
            at = float(self.times[index])
            rates = tuple(
                float(x[index - per_line + 1 : index + 1].sum()) / (per_line * self.step)
                for x in (prompt, generated)
            )
            # From 0.8.5 on a line without throughput is printed once, then at DEBUG.
            if not any((*rates, *before)):
                continue
            before = rates
            rate = 100 * rates_printed[index]
            level = self.levels
            text = (
                f"INFO [loggers.py:259] Engine {int(self.engine):03d}: "
                f"Avg prompt throughput: {rates[0]:.1f} tokens/s, "
                f"Avg generation throughput: {rates[1]:.1f} tokens/s, "
                f"Running: {round(level['running'][index])} reqs, "
                f"Waiting: {round(level['waiting'][index])} reqs, "
                f"GPU KV cache usage: {100 * level['usage'][index]:.1f}%, "
                f"Prefix cache hit rate: {rate:.1f}%"
            )
            yield at, self._vllm(at, text)

    def _printed_rates(self, amounts: dict[str, np.ndarray]) -> np.ndarray:
        """Give the hit rate over the latest 1,000 requests of the process; shape (n,)."""
        requests, queries, hits = (
            np.concatenate(([0.0], np.cumsum(amounts[f"vllm:{name}"])))
            for name in (
                "time_to_first_token_seconds_count",
                "prefix_cache_queries_total",
                "prefix_cache_hits_total",
            )
        )
        begins = np.zeros(self.times.size, dtype=int)
        for at, _, _ in self.restarts:
            begins[self.times > at] = int((self.times <= at).sum())
        oldest = np.searchsorted(requests, requests[1:] - 1000.0)
        first = np.maximum(begins, np.minimum(oldest, np.arange(self.times.size)))
        looked = queries[1:] - queries[first]
        return (hits[1:] - hits[first]) / np.where(looked > 0, looked, 1.0)

    def _start(
        self, at: float, blocks: int, changed: dict[str, object]
    ) -> Iterator[tuple[float, str]]:
        args = {
            "model_tag": self.model,
            "model": self.model,
            "max_model_len": self.max_model_len,
            "max_num_seqs": self.max_num_seqs,
            **self.flags,
            **{key: value for key, value in changed.items() if key != "blocks"},
        }
        speculative = args.get("speculative_config")
        tokens = blocks * self.block_size
        banner = (
            f"[utils.py:299]  ▄▄ ▄█ █     █     █ ▀▄▀ █  version {self.version}"
            if self.by_source
            else f"[api_server.py:1755] vLLM API server version {self.version}"
        )
        lines = (
            ("APIServer", banner),
            ("APIServer", f"[utils.py:233] non-default args: {args}"),
            (
                "EngineCore",
                f"[core.py:105] Initializing a V1 LLM engine (v{self.version}) with config: "
                f"model='{args['model']}', speculative_config={speculative}, "
                f"tokenizer='{args['model']}', dtype=torch.bfloat16, "
                f"max_seq_len={self.max_model_len}, tensor_parallel_size=1, "
                "pipeline_parallel_size=1, data_parallel_size=1, kv_cache_dtype=auto, "
                f"device_config=cuda, enable_prefix_caching={self.prefix_caching}, "
                "enable_chunked_prefill=True",
            ),
            ("EngineCore", f"[kv_cache_utils.py:1319] GPU KV cache size: {tokens:,} tokens"),
            (
                "EngineCore",
                f"[kv_cache_utils.py:1324] Maximum concurrency for {self.max_model_len:,} tokens "
                f"per request: {tokens / self.max_model_len:.2f}x",
            ),
        )
        for index, (process, text) in enumerate(lines):
            moment = at + index
            yield moment, self._vllm(moment, f"INFO {text}", process)


def _stamp(at: float) -> str:
    return datetime.fromtimestamp(T0 + at, UTC).strftime("%m-%d %H:%M:%S")


def _rfc3339(at: float) -> str:
    return datetime.fromtimestamp(T0 + at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f000Z")


@pytest.fixture(params=[5.0, 15.0], ids=["scraped-5s", "scraped-15s"])
def server(tmp_path: Path, request: pytest.FixtureRequest):
    """Make servers that write under the test's own folder, scraped densely and as usual."""

    def make(**settings: object) -> Server:
        told = {"step": request.param, **settings}
        return Server(tmp_path / "incident", **told)  # type: ignore[arg-type]

    return make
