"""The effective max_num_seqs of a server that was not told one, by release and device."""

import pytest

from forensics.catalog.defaults import (
    batch_defaults,
    default_gpu_memory_utilization,
    default_max_num_seqs,
    default_prefix_caching,
)

A100 = ("NVIDIA A100-SXM4-80GB", 79.25)
H100 = ("NVIDIA H100 80GB HBM3", 79.1)
L40S = ("NVIDIA L40S", 44.4)
MI300X = ("AMD Instinct MI300X", 191.5)
GB10 = ("NVIDIA GB10", 119.7)


@pytest.mark.parametrize(
    ("version", "generation", "gpu", "seqs", "tokens"),
    [
        ((0, 4, 2), "V0", A100, 256, None),
        ((0, 10, 2), "V0", H100, 256, None),
        ((0, 6, 6), "V1", A100, 256, 2048),
        ((0, 7, 3), "V1", A100, 1024, 2048),
        ((0, 7, 3), "V1", H100, 1024, 8192),
        ((0, 8, 4), "V1", H100, 1024, 8192),
        ((0, 8, 4), "V1", A100, 256, 2048),
        ((0, 8, 5), "V1", A100, 1024, 8192),
        ((0, 8, 5), "V1", L40S, 256, 2048),
        ((0, 9, 0), "V1", A100, 256, 2048),
        ((0, 27, 0), "V1", H100, 1024, 8192),
        ((0, 27, 0), "V1", MI300X, 1024, 8192),
        ((0, 28, 0), "V1", MI300X, 1024, 16384),
        ((0, 32, 0), "V1", GB10, 1024, 8192),
        ((0, 33, 0), "V1", GB10, 256, 2048),
    ],
)
def test_defaults_by_release_and_device(version, generation, gpu, seqs, tokens) -> None:
    found = batch_defaults(version, generation, *gpu)
    assert (found.max_num_seqs, found.max_num_batched_tokens) == (seqs, tokens)


def test_an_unknown_gpu_gives_no_default_where_it_depends_on_it() -> None:
    assert default_max_num_seqs((0, 32, 0), "V1") is None
    assert default_max_num_seqs((0, 32, 0), "V1", None, 79.1) is None
    assert default_max_num_seqs((0, 32, 0), "V1", None, 22.0) == 256
    assert default_max_num_seqs((0, 32, 0), "V1", "NVIDIA A100-SXM4-80GB") == 256
    assert default_max_num_seqs((0, 8, 2), "V1") == 1024
    assert default_max_num_seqs((0, 6, 0), None) == 256


def test_cpu_throughput_mode_and_the_step_budget() -> None:
    assert default_max_num_seqs((0, 32, 0), "V1", device="cpu", world_size=2) == 256
    assert default_max_num_seqs((0, 9, 2), "V1", device="cpu") == 32
    assert default_max_num_seqs((0, 20, 0), "V1", *H100, performance_mode="throughput") == 2048
    assert default_max_num_seqs((0, 16, 0), "V1", *H100, performance_mode="throughput") == 1024
    assert default_max_num_seqs((0, 20, 0), "V1", *H100, max_num_batched_tokens=512) == 512
    assert default_max_num_seqs((0, 10, 0), "V1", *H100, max_num_batched_tokens=512) == 1024


def test_utilization_and_prefix_caching_defaults() -> None:
    assert default_gpu_memory_utilization((0, 19, 0)) == 0.90
    assert default_gpu_memory_utilization((0, 20, 0)) == 0.92
    assert default_prefix_caching((0, 10, 2), "V0") is False
    assert default_prefix_caching((0, 11, 2), None) is True
    assert default_prefix_caching((0, 27, 0), "V1", hybrid=True) is False
    assert default_prefix_caching((0, 28, 0), "V1", hybrid=True) is True
