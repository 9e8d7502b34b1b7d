"""What would tell the parts of a fall apart, in the words of the release."""

from dataclasses import replace

import pytest

from forensics.attribution import Attribution
from forensics.diary import Epoch, Version
from rules.prefix_cache.strength import lacking
from tests.verdict.test_weigh import fall


def case(release, **changes):
    attribution = Attribution(0.8, 0.3, (), decided=False, basis="score")
    epoch = Epoch(None, None, version=Version.parse(release))
    return replace(fall(), epoch=epoch, attribution=replace(attribution, **changes))


@pytest.mark.parametrize(
    ("release", "named"),
    [
        ("0.11.2", "a release that counts computed tokens (0.13+)"),
        ("0.14.1", "request_prefill_kv_computed_tokens"),
        ("0.20.2", "prompt_tokens_by_source"),
    ],
)
def test_repeated_lookups_ask_for_tokens_that_are_counted_once(release, named):
    (missing,) = lacking(case(release, perhaps_counted=True))
    assert missing.startswith(named)


def test_what_is_decided_lacks_nothing_and_the_rest_lacks_contents():
    assert lacking(case("0.20.2", decided=True)) == ()
    assert lacking(case("0.20.2")) == ("request contents or block histograms",)
