"""Device names in every spelling people and servers use, and what a total memory can mean."""

import pytest

from forensics.catalog.gpus import GIB, best, conflicting, gpus, identify

A100 = ("NVIDIA A100-SXM4-80GB", "NVIDIA A100 80GB PCIe")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("NVIDIA_H100_80GB_HBM3", ("NVIDIA H100 80GB HBM3",)),
        ("NVIDIA H100 80GB HBM3", ("NVIDIA H100 80GB HBM3",)),
        ("NVIDIA A100-SXM4-80GB", ("NVIDIA A100-SXM4-80GB",)),
        ("NVIDIA-A100-SXM4-80GB-SHARED", ("NVIDIA A100-SXM4-80GB",)),
        ("A100-80GB", A100),
        ("a100 80gb", A100),
        ("Tesla-T4", ("Tesla T4",)),
        ("t4", ("Tesla T4",)),
        ("NVIDIA L4", ("NVIDIA L4",)),
        ("L40S", ("NVIDIA L40S",)),
        ("rtx 4090", ("NVIDIA GeForce RTX 4090",)),
        ("AMD_Instinct_MI300X_OAM", ("AMD Instinct MI300X",)),
        ("MI355X", ("AMD Instinct MI355X",)),
        ("B300", ("NVIDIA B300 SXM6 AC",)),
        ("NVIDIA RTX 6000 Ada Generation", ("NVIDIA RTX 6000 Ada Generation",)),
        ("A100X9000", ()),
        ("", ()),
        ("NVIDIA A100-SXM4-80GB MIG 1g.10gb", ()),
        ("NVIDIA-A100-SXM4-80GB-MIG-2g.20gb", ()),
    ],
)
def test_names_are_found_in_any_spelling(name: str, expected: tuple[str, ...]) -> None:
    assert tuple(gpu.name for gpu in identify(name)) == expected


def test_total_memory_alone_names_every_card_that_fits() -> None:
    names = [gpu.name for gpu in identify(None, memory_gib=79.11)]
    assert "NVIDIA H100 80GB HBM3" in names
    assert "NVIDIA A100-SXM4-80GB" in names
    assert [gpu.name for gpu in identify(None, memory_gib=22.03)] == [
        "NVIDIA A10",
        "NVIDIA A10G",
        "NVIDIA L4",
    ]
    assert next(g.name for g in identify(None, memory_bytes=139.8 * GIB)) == "NVIDIA H200"


def test_memory_settles_an_ambiguous_name() -> None:
    assert {g.memory_gb for g in identify("A100", memory_gib=39.39)} == {40.0}
    assert [g.name for g in identify("V100-SXM2", memory_gib=31.74)] == ["Tesla V100-SXM2-32GB"]


def test_a_name_and_a_memory_that_cannot_both_be_true_are_told() -> None:
    assert identify("L4", memory_gib=79.1) == ()
    assert [gpu.name for gpu in conflicting("L4", 79.1)] == ["NVIDIA L4"]
    assert conflicting("L4", 22.03) == ()
    # A MIG slice reports the card's name with a part of its memory.
    assert identify("NVIDIA A100-SXM4-80GB", memory_gib=39.4) == ()


def test_nothing_known_is_no_candidate() -> None:
    assert identify(None) == ()
    assert identify("some accelerator") == ()
    assert best("some accelerator") is None


@pytest.mark.parametrize("gpu", gpus().values(), ids=lambda gpu: gpu.name)
def test_every_entry_is_plausible(gpu) -> None:
    assert gpu.seen_gib[0] <= gpu.cuda_gib <= gpu.seen_gib[1]
    # Binary units alone take 6.9 %; ECC, tables and firmware take the rest. AMD sells GiB as GB.
    assert 0.8 * gpu.memory_gb < gpu.cuda_gib <= gpu.memory_gb
    assert gpu.memory_seen in ("vllm", "torch", "marketing")
    assert 150 < gpu.bandwidth_gb_s <= 8000
    assert 10 < gpu.fp16_tflops <= 2517
    assert gpu.fp8_tflops is None or 1.9 < gpu.fp8_tflops / gpu.fp16_tflops < 2.1
    assert gpu in identify(gpu.name)
    assert gpu in identify(gpu.name.replace(" ", "_"), memory_gib=gpu.cuda_gib)
    assert gpu in identify(None, memory_gib=gpu.cuda_gib)


def test_the_span_from_t4_to_b300_and_mi355x_is_covered() -> None:
    wanted = {"T4", "V100", "A10", "A100", "L4", "L40S", "H100", "H200", "B200", "B300", "RTX 4090"}
    wanted |= {"RTX 5090", "RTX 3090", "MI210", "MI250X", "MI300X", "MI325X", "MI350X", "MI355X"}
    assert {name for name in wanted if best(name) is None} == set()
