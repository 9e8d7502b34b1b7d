"""The catalogue of log lines against facts read by hand in the sources of the releases named."""

from forensics.catalog.log_lines import circulating, log_lines
from forensics.catalog.versions import version


def printed(words: str, release: str, generation: str) -> bool:
    return any(
        line.printed_by(version(release), generation)
        for line in log_lines()
        if any(words in text for text in line.texts)
    )


def test_preemption_lines() -> None:
    assert printed("is preempted by", "0.6.6", "V0")
    assert not printed("is preempted by", "0.11.0", "V1")
    assert printed("Preemptions: ", "0.11.1", "V1")
    assert not printed("Preemptions: ", "0.11.0", "V1")


def test_stats_lines() -> None:
    for release, generation in (("0.4.2", "V0"), ("0.7.1", "V1"), ("0.33.0", "V1")):
        assert printed("Avg prompt throughput", release, generation)
    assert printed("Swapped: ", "0.10.2", "V0")
    assert not printed("Swapped: ", "0.10.2", "V1")


def test_lines_that_only_articles_show_are_kept_apart() -> None:
    assert len(circulating()) == 2
    assert not printed("swap out queue", "0.6.6", "V0")


def test_no_sample_place_is_left() -> None:
    for line in log_lines():
        assert not any("{" in text and ":%" in text for text in line.texts), line.texts
