"""What a V0 engine leaves behind, told by the same levels as `conftest.Server`.

Line shapes and names are those of releases 0.2.0 to 0.8.2: stats lines every five seconds with
pending and swapped requests, the hit rate as a lifetime average on a line of its own (from 0.5.5),
a warning for the 1st, 51st, 101st … preemption (from 0.4.3), and metrics without an engine label.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tests.scenarios.conftest import Server

_INTERVAL_S = 5.0


@dataclass
class V0Server(Server):
    """One V0 engine's life; `swapped` is a level of its own."""

    version: str = "0.6.3"
    from_start: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self.levels["swapped"] = np.zeros(self.times.size)

    def write(self, *, log: bool = True, metrics: bool = True, stamped: bool = False) -> str:
        """Write the files and name the folder; see `conftest.Server.write`."""
        self.from_start = not metrics
        return super().write(log=log, metrics=metrics, stamped=stamped)

    def _vllm(self, at: float, text: str, process: str = "APIServer") -> str:
        line = super()._vllm(at, text, process)
        return line if self._from(0, 8) else line.replace(" [", " ", 1)

    def _average(self) -> np.ndarray:
        """Give the average hit rate since the process began; -1 without prefix caching.

        It began 700 steps before the recording, as the counters did; or, where the log is all there
        is, with the log.
        """
        if not self.prefix_caching:
            return np.full(self.times.size, -1.0)
        amounts = super()._amounts()
        queries, hits = (amounts[f"vllm:prefix_cache_{name}_total"] for name in ("queries", "hits"))
        began = 700.0 * float(queries[0]), 700.0 * float(hits[0])
        before = self.times <= min((at for at, _, _ in self.restarts), default=np.inf)
        earlier = np.where(before & self.from_start, 1.0, 0.0)
        looked, found = (
            self._counted(each) - base * earlier
            for each, base in zip((queries, hits), began, strict=True)
        )
        return found / np.maximum(looked, 1.0)

    def _amounts(self) -> dict[str, np.ndarray]:
        amounts = super()._amounts()
        gone = ["prefix_cache", "by_source", "request_queue", "request_prefill", "request_decode"]
        if not self._from(0, 4, 3):
            gone.append("num_preemptions")
        return {
            name: grown for name, grown in amounts.items() if not any(part in name for part in gone)
        }

    def _series(self) -> Iterator[dict[str, object]]:
        renamed = {"vllm:kv_cache_usage_perc": "vllm:gpu_cache_usage_perc"}
        for series in super()._series():
            labels = dict(series["metric"])  # type: ignore[call-overload]
            labels.pop("engine", None)
            if labels["__name__"] == "vllm:cache_config_info" and not self._from(0, 3, 3):
                continue
            labels["__name__"] = renamed.get(labels["__name__"], labels["__name__"])
            yield {**series, "metric": labels}
        shown = [("vllm:num_requests_swapped", self.levels["swapped"])]
        if self._from(0, 5, 5):
            shown.append(("vllm:gpu_prefix_cache_hit_rate", self._average()))
        for name, values in shown:
            one = self._one(name, values, self._up())
            one["metric"].pop("engine")  # type: ignore[attr-defined]
            yield one

    def _log(self) -> Iterator[tuple[float, str]]:
        if self.from_start:
            yield from self._start(-90.0, self.blocks, {})
        else:
            yield from self._start(-700.0 * self.step, self.blocks, {})
        for at, down, changed in self.restarts:
            blocks = int(str(changed.get("blocks", self.blocks)))
            yield from self._start(at + 0.3 * down, blocks, changed)
        up, level, amounts = self._up(), self.levels, super()._amounts()
        average = self._average()
        per_line = max(1, round(_INTERVAL_S / self.step))
        span = per_line * self.step
        for index in range(per_line, self.times.size, per_line):
            inside = slice(index - per_line + 1, index + 1)
            if not up[index]:
                continue
            rates = [
                float(amounts[f"vllm:{name}_tokens_total"][inside].sum()) / span
                for name in ("prompt", "generation")
            ]
            stop = "." if self._from(0, 4, 3) else ""
            at = float(self.times[index])
            yield (
                at,
                self._vllm(
                    at,
                    f"INFO [metrics.py:345] Avg prompt throughput: {rates[0]:.1f} tokens/s, "
                    f"Avg generation throughput: {rates[1]:.1f} tokens/s, "
                    f"Running: {round(level['running'][index])} reqs, "
                    f"Swapped: {round(level['swapped'][index])} reqs, "
                    f"Pending: {round(level['waiting'][index])} reqs, "
                    f"GPU KV cache usage: {100 * level['usage'][index]:.1f}%, "
                    f"CPU KV cache usage: {2.0 * level['swapped'][index]:.1f}%{stop}",
                ),
            )
            if self._from(0, 5, 5) and self.prefix_caching:
                yield (
                    at + 1e-3,
                    self._vllm(
                        at,
                        "INFO [metrics.py:361] Prefix cache hit rate: "
                        f"GPU: {100 * average[index]:.2f}%, CPU: 0.00%",
                    ),
                )
        yield from self._warnings(amounts["vllm:num_preemptions_total"])

    def _warnings(self, preempted: np.ndarray) -> Iterator[tuple[float, str]]:
        if not self._from(0, 4, 3):
            return
        total = np.cumsum(preempted)
        for number in range(1, int(total[-1]) + 1, 50):
            at = float(self.times[int(np.searchsorted(total, number))])
            text = (
                f"WARNING [scheduler.py:1481] Sequence group chatcmpl-{number:032x} is preempted "
                "by PreemptionMode.RECOMPUTE mode because there is not enough KV cache space. This "
                "can affect the end-to-end performance. Increase gpu_memory_utilization or "
                "tensor_parallel_size to provide more KV cache memory. "
                f"total_num_cumulative_preemption={number}"
            )
            yield at - 0.5, self._vllm(at, text)

    def _start(
        self, at: float, blocks: int, changed: dict[str, object]
    ) -> Iterator[tuple[float, str]]:
        args = {
            "model": self.model,
            "max_model_len": self.max_model_len,
            "enable_prefix_caching": self.prefix_caching,
            "max_num_seqs": self.max_num_seqs,
            **self.flags,
        }
        told = ", ".join(f"{name}={value!r}" for name, value in args.items())
        caching = f", enable_prefix_caching={self.prefix_caching}" if self._from(0, 5, 1) else ""
        release = f" (v{self.version})" if self._from(0, 4) else ""
        engine = "a V0" if self._from(0, 7, 1) else "an"
        device = "cuda" if self._from(0, 7) else "GPU"
        lines = [
            f"[api_server.py:529] args: Namespace({told})",
            f"[llm_engine.py:237] Initializing {engine} LLM engine{release} with config: "
            f"model='{self.model}', tokenizer='{self.model}', dtype=torch.bfloat16, "
            f"max_seq_len={self.max_model_len}, tensor_parallel_size=1, seed=0{caching})",
            f"[gpu_executor.py:122] # {device} blocks: {blocks}, # CPU blocks: 2048",
        ]
        if self._from(0, 4):
            lines.insert(0, f"[api_server.py:528] vLLM API server version {self.version}")
        for index, text in enumerate(lines):
            yield at + index, self._vllm(at + index, f"INFO {text}")
