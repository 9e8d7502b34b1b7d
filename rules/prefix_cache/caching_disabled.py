"""PC105 caching-disabled: prefix caching is off.

What it detects
    A server that answers prompts and never looks anything up: by flag, by the default of its
    release or model class, or because the architecture does not support it.

Why it matters
    A hit rate of zero, or none at all, is then no incident of the cache.

Evidence it needs
    ``cache_config_info``, the engine config dump or the flags; or lookups that stay at zero while
    prompts flow.

How it decides
    A stated ``enable_prefix_caching=False`` is certain. Without a statement: both counters exist
    and stand still while prompt tokens grow.

When it is silent
    Caching is stated to be on, or lookups are counted, or no prompt was seen.

False positives
    Requests that skip the cache (prompt logprobs) also count no lookup; a stated "on" wins.

What to do
    Turn it on, unless the workload has nothing to share.

Versions
    Off by default in V0 and for hybrid models up to 0.27; 0.32 leaves the rate out of the log line,
    0.11.2 prints 0.0 %.

References
    Recording j- of the corpus; observed.md 14.
"""

from dataclasses import dataclass

from forensics.catalog.messages import Message
from rules.exhibits import stated
from rules.interface import Action, Case, Exhibit, Opinion, Params, Severity


@dataclass(frozen=True, slots=True)
class CachingDisabledParams(Params):
    """Thresholds.

    Attributes:
        least_prompt_tokens: prompt tokens that must have been seen before silence of the lookups
            means anything (guess: some dozens of prompts).
    """

    least_prompt_tokens: float = 5000.0


class CachingDisabled:
    """The rule. See the module docstring."""

    id = "PC105"
    name = "caching-disabled"
    title = "Prefix caching is off"
    severity = Severity.WARNING
    needs = ("fact:prefix_caching|queries",)
    scope = "window"

    def __init__(self, params: CachingDisabledParams | None = None) -> None:
        self.params = params or CachingDisabledParams()

    def evaluate(self, case: Case) -> Opinion | None:
        """Judge the whole window."""
        stated_off = case.epoch.prefix_caching is False
        silent = self._silent(case)
        if not stated_off and not silent:
            return None
        if case.epoch.prefix_caching is True:
            return None
        shown: list[Exhibit] = []
        if stated_off:
            shown.append(
                stated("enable_prefix_caching", "False", "setting", case, "prefix_caching")
            )
        prompts = case.timeline.grid["prompt_tokens"].sum()
        if silent:
            place = case.timeline.place("queries", case.window[1])
            shown.append(Exhibit("queries", None, 0.0, "tokens", place))
            place = case.timeline.place("prompt_tokens", case.window[1])
            shown.append(Exhibit("prompt_tokens", None, float(prompts), "tokens", place))
        return Opinion(
            rule_id=self.id,
            cause=self.name,
            weight=0.98 if stated_off else 0.8,
            severity=self.severity,
            summary=Message("PC105.summary", {"engine": case.timeline.engine}),
            onset=(case.window[0], case.window[0]),
            for_=tuple(shown),
            actions=(
                Action(
                    Message("PC105.turn_on"), Message("PC105.turn_on_effect"),
                    "--enable-prefix-caching",
                ),
            ),
        )  # fmt: skip

    def _silent(self, case: Case) -> bool:
        grid = case.timeline.grid
        if not case.timeline.has("queries") or not case.timeline.has("prompt_tokens"):
            return False
        return (
            float(grid["queries"].sum()) == 0.0
            and float(grid["prompt_tokens"].sum()) >= self.params.least_prompt_tokens
        )
