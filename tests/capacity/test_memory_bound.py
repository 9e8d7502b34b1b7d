"""The field's formula on bytes, with the worked example that circulates with a wrong result."""

import pytest

from forensics.capacity.bounds import Interval, memory_bound

LLAMA_3_8B = (131_072.0, "32 layers x 2 x 8 KV heads x 128 x 2 B = 131,072 B")
SOURCES = ("given", "given", "given")


def bound(free, kept, tokens):
    return memory_bound(
        Interval.exact(free), Interval.exact(kept), Interval.exact(tokens), LLAMA_3_8B, SOURCES
    )


def test_56_free_9_kept_2048_tokens_is_188_in_gib():
    assert bound(56.0, 9.0, 2048.0).value == pytest.approx(188.0)


def test_and_175_when_the_gigabytes_are_decimal():
    decimal = 1e9 / (1 << 30)
    assert int(bound(56 * decimal, 9 * decimal, 2048.0).value) == 175


def test_the_47_that_circulates_is_right_for_requests_of_8192_tokens():
    assert bound(56.0, 9.0, 8192.0).value == pytest.approx(47.0)


def test_interval_spans_the_corners():
    wide = memory_bound(
        Interval.exact(56.0), Interval(9.0, 8.0, 10.0), Interval.exact(2048.0), LLAMA_3_8B, SOURCES
    )
    assert (wide.low, wide.high) == (pytest.approx(184.0), pytest.approx(192.0))
    assert wide.steps[-1] == "(56.00 GiB - 9.00 GiB) / (2,048 x 131,072 B) = 188"
