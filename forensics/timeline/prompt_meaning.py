"""What a logged prompt throughput counts: tokens computed, by the release that printed it.

Up to 0.15 the stats line counts whole prompts, those found in the cache included; from 0.16.0 only
what was computed (log reference, 2.2). A jump across an upgrade is no change of the traffic.
"""

import numpy as np

from forensics.diary import EngineDiary
from forensics.timeline.grid import Columns
from forensics.timeline.records import Origin

_COMPUTED_ONLY = (0, 16)


def add_computed(columns: Columns, diary: EngineDiary) -> None:
    """Add the prompt tokens computed between two stats lines, where the release is known.

    Args:
        columns: of a log, changed in place.
        diary: tells the release at each line.
    """
    origin = columns.origins.get("prompt_tps")
    if origin is None or "computed_tokens" in columns.values:
        return
    logged = columns.get("prompt_tokens")
    computed = np.full(columns.count, np.nan)
    for epoch in diary.epochs:
        begin = epoch.start if epoch.start is not None else -np.inf
        inside = columns.times >= begin
        older = epoch.before(*_COMPUTED_ONLY)
        if older is False:
            computed[inside] = logged[inside]
        elif older and epoch.generation == "V1":  # V0 prints a lifetime average (see `derive`)
            computed[inside] = (logged * (1.0 - columns.get("logged_hit_rate")))[inside]
        else:
            computed[inside] = np.nan
    if not np.isnan(computed).all():
        columns.values["computed_tokens"] = computed
        columns.origins["computed_tokens"] = Origin(
            "log", origin.source, origin.series, "from the throughput, as its release counts it"
        )
