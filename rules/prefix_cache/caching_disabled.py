"""PC105 caching-disabled: prefix caching is off.

What it detects
    A server that answers prompts and never looks anything up: by flag, by the default of its
    release or model class, or because the architecture does not support it.

Why it matters
    A hit rate of zero, or none at all, is then no incident of the cache.

Evidence it needs
    ``cache_config_info``, the engine config dump or the flags; the release with its start-up
    arguments; or lookups that stay at zero while prompts flow.

How it decides
    A stated ``enable_prefix_caching=False`` is certain. Without a statement: both counters exist
    and stand still while prompt tokens grow, or the arguments do not turn on what this release
    leaves off by default (V0; up to 0.27 models with Mamba or linear-attention layers). Where the
    default says it, the finding says so: nobody turned it off. Where hits ended with a restart and
    the process that runs since states that caching is off, that is why.

When it is silent
    Caching is stated to be on, or anything was looked up or hit, or no prompt was seen.

False positives
    Requests that skip the cache (prompt logprobs) also count no lookup; a stated "on" wins.

What to do
    Turn it on, unless the workload has nothing to share.

Versions
    Off by default in V0 and for hybrid models up to 0.27; 0.32 leaves the rate out of the log line,
    0.11.2 prints 0.0 %.

References
    Recording j- of the corpus; observed.md 14; memory model reference, section 2.
"""

from dataclasses import dataclass

from forensics.catalog.defaults import default_prefix_caching
from forensics.catalog.messages import Message
from forensics.catalog.models import geometry
from forensics.diary import Epoch
from forensics.episodes import Episode
from rules.exhibits import stated
from rules.interface import Action, Case, Exhibit, Opinion, Params, Severity


@dataclass(frozen=True, slots=True)
class CachingDisabledParams(Params):
    """Thresholds.

    Attributes:
        least_prompt_tokens: prompt tokens that must have been seen before silence of the lookups
            means anything (guess: some dozens of prompts).
        nothing: hit rate that is none, ratio (one block in a thousand).
    """

    least_prompt_tokens: float = 5000.0
    nothing: float = 0.001


class CachingDisabled:
    """The rule. See the module docstring."""

    id = "PC105"
    name = "caching-disabled"
    title = "Prefix caching is off"
    severity = Severity.WARNING
    needs = ("fact:prefix_caching|queries|fact:version",)
    scope = "both"

    def __init__(self, params: CachingDisabledParams | None = None) -> None:
        self.params = params or CachingDisabledParams()

    def evaluate(self, case: Case) -> Opinion | None:
        """Judge the whole window, or a fall to nothing after a restart without caching."""
        if case.epoch.prefix_caching is True:
            return None
        if case.episode is not None and not self._turned_off(case, case.episode):
            return None
        stated_off = case.epoch.prefix_caching is False
        silent = self._silent(case)
        default = _off_by_default(case.epoch)
        unasked = default is not None and bool(case.epoch.flags) and self._no_lookup(case)
        if not stated_off and not silent and not unasked:
            return None
        shown: list[Exhibit] = []
        if stated_off:
            shown.append(
                stated("enable_prefix_caching", "False", "setting", case, "prefix_caching")
            )
        if default is not None and case.epoch.version is not None:
            shown.append(stated("vllm_version", str(case.epoch.version), "text", case, "version"))
        prompts = case.timeline.grid["prompt_tokens"].sum()
        if silent:
            place = case.timeline.place("queries", case.window[1])
            shown.append(Exhibit("queries", None, 0.0, "tokens", place))
            place = case.timeline.place("prompt_tokens", case.window[1])
            shown.append(Exhibit("prompt_tokens", None, float(prompts), "tokens", place))
        return Opinion(
            rule_id=self.id,
            cause=self.name,
            weight=0.98 if stated_off else 0.9 if unasked else 0.8,
            severity=self.severity,
            summary=Message(
                f"PC105.{default or 'summary'}",
                {
                    "engine": case.timeline.engine,
                    "version": str(case.epoch.version),
                    "model": case.epoch.model.value if case.epoch.model else None,
                },
            ),
            share=None if case.episode is None else 1.0,
            onset=(
                (case.window[0], case.window[0]) if case.episode is None else case.episode.onset
            ),
            for_=tuple(shown),
            actions=(
                Action(
                    Message("PC105.turn_on"), Message("PC105.turn_on_effect"),
                    "--enable-prefix-caching",
                ),
            ),
        )  # fmt: skip

    def _turned_off(self, case: Case, episode: Episode) -> bool:
        """Tell whether what runs in the low time of a fall has its caching off, as it states."""
        return case.epoch.prefix_caching is False and episode.level < self.params.nothing

    def _silent(self, case: Case) -> bool:
        """Tell whether lookups are counted, and none was while prompts flowed."""
        return case.timeline.has("queries") and self._no_lookup(case)

    def _no_lookup(self, case: Case) -> bool:
        """Tell whether prompts flowed and nothing shows a lookup or a hit."""
        grid = case.timeline.grid
        return float(grid["prompt_tokens"].sum()) >= self.params.least_prompt_tokens and not any(
            float(grid[name].sum()) > 0.0 for name in ("queries", "hit_rate", "logged_hit_rate")
        )


def _off_by_default(epoch: Epoch) -> str | None:
    """Name what keeps caching off where nobody asked for it: "engine" or "model_class"."""
    if epoch.version is None or epoch.flag("enable_prefix_caching") == "True":
        return None
    release = (epoch.version.major, epoch.version.minor, epoch.version.patch)
    # From 0.9.0 on only what was set is printed: off is then somebody's wish.
    if release >= (0, 9, 0) and epoch.flag("enable_prefix_caching") == "False":
        return None
    if not default_prefix_caching(release, epoch.generation):
        return "engine"
    model = geometry(epoch.model.value) if epoch.model else None
    hybrid = model is not None and model.kind == "hybrid"
    return None if default_prefix_caching(release, epoch.generation, hybrid) else "model_class"
