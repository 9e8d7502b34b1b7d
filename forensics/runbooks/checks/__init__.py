"""All runbook checks, by id. A new check is one module and one line here."""

from forensics.runbooks.checks import (
    rb101_promql_syntax,
    rb102_metric_unknown,
    rb103_metric_renamed,
    rb104_metric_not_in_target,
    rb105_metric_hidden,
    rb106_counter_without_total,
    rb107_rate_on_gauge,
    rb108_counter_as_gauge,
    rb109_lifetime_ratio,
    rb110_inverted_hit_rate,
    rb111_summed_shares,
    rb112_percent_scale,
    rb113_averaged_engines,
    rb114_no_traffic_guard,
    rb115_range_too_short,
    rb116_histogram_misuse,
    rb117_twins_added,
    rb901_snooze_expired,
    rb902_directive_unknown,
    rb903_document_unread,
)
from forensics.runbooks.interface import RunbookCheck

CHECKS: tuple[RunbookCheck, ...] = (
    rb101_promql_syntax.CHECK,
    rb102_metric_unknown.CHECK,
    rb103_metric_renamed.CHECK,
    rb104_metric_not_in_target.CHECK,
    rb105_metric_hidden.CHECK,
    rb106_counter_without_total.CHECK,
    rb107_rate_on_gauge.CHECK,
    rb108_counter_as_gauge.CHECK,
    rb109_lifetime_ratio.CHECK,
    rb110_inverted_hit_rate.CHECK,
    rb111_summed_shares.CHECK,
    rb112_percent_scale.CHECK,
    rb113_averaged_engines.CHECK,
    rb114_no_traffic_guard.CHECK,
    rb115_range_too_short.CHECK,
    rb116_histogram_misuse.CHECK,
    rb117_twins_added.CHECK,
    rb901_snooze_expired.CHECK,
    rb902_directive_unknown.CHECK,
    rb903_document_unread.CHECK,
)

__all__ = ["CHECKS"]
