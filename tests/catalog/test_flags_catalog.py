"""The flag catalogue against facts read by hand in the argument parsers of the releases named."""

import pytest

from forensics.catalog.flags_catalog import conflicts, exists, flag, flags


def test_every_flag_is_there() -> None:
    assert len(flags()) == 87


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("--max-num-seqs", "--max-num-seqs"),
        ("--max_num_seqs", "--max-num-seqs"),
        ("--max-num-seqs=256", "--max-num-seqs"),
        ("-tp", "--tensor-parallel-size"),
        ("--no-enable-prefix-caching", "--enable-prefix-caching"),
        ("--speculative-config.model", "--speculative-config"),
        ("--tensor-parallel", "--tensor-parallel-size"),
        ("--preemption_mode", "--preemption_mode"),
        ("--kv-cache-memory", "--kv-cache-memory-bytes"),
    ],
)
def test_spellings(written: str, name: str) -> None:
    found = flag(written)
    assert found is not None
    assert found.name == name


def test_what_no_release_has() -> None:
    assert flag("--max-num-sequences") is None
    assert not exists("--max-num-sequences")
    assert flag("--no-max-num-seqs") is None
    assert exists("--trust-remote-code") and flag("--trust-remote-code") is None


def test_swap_space() -> None:
    swap = flags()["--swap-space"]
    assert swap.v0_only
    assert str(swap.span) == "0.2.0..0.17.0"


def test_conflicts_name_known_flags() -> None:
    for conflict in conflicts():
        assert all(name in flags() for name in conflict.flags)
