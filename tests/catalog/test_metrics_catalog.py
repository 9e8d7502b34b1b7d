"""The metric catalogue against facts read by hand in the sources of the releases named."""

import pytest

from forensics.catalog.metrics_catalog import Exposure, families, family, newest_release, sample
from forensics.catalog.versions import default_generation, parse_version, version


def test_every_family_is_there() -> None:
    assert len(families()) == 157
    assert str(newest_release()) == "0.33.0"


@pytest.mark.parametrize(
    ("name", "release", "generation", "exposure"),
    [
        ("vllm:num_preemptions", "0.7.3", "V1", Exposure.ABSENT),
        ("vllm:num_preemptions", "0.8.0", "V1", Exposure.VISIBLE),
        ("vllm:num_preemptions", "0.4.3", "V0", Exposure.VISIBLE),
        ("vllm:gpu_cache_usage_perc", "0.10.2", "V1", Exposure.VISIBLE),
        ("vllm:gpu_cache_usage_perc", "0.11.0", "V1", Exposure.HIDDEN),
        ("vllm:gpu_cache_usage_perc", "0.12.0", "V1", Exposure.ABSENT),
        ("vllm:gpu_prefix_cache_hit_rate", "0.8.2", "V0", Exposure.VISIBLE),
        ("vllm:gpu_prefix_cache_hit_rate", "0.9.0", "V0", Exposure.HIDDEN),
        ("vllm:gpu_prefix_cache_hit_rate", "0.8.2", "V1", Exposure.ABSENT),
        ("vllm:time_per_output_token_seconds", "0.14.0", "V1", Exposure.HIDDEN),
        ("vllm:prompt_tokens_by_source", "0.16.0", "V1", Exposure.VISIBLE),
    ],
)
def test_exposure(name: str, release: str, generation: str, exposure: Exposure) -> None:
    entry = family(name)
    assert entry is not None
    assert entry.exposure(version(release), generation) is exposure


def test_unit_changed_from_blocks_to_tokens() -> None:
    entry = family("vllm:gpu_prefix_cache_queries")
    assert entry is not None
    assert entry.unit_in(version("0.8.5")) == "blocks"
    assert entry.unit_in(version("0.9.0")) == "tokens"


def test_renames_point_at_each_other() -> None:
    for entry in families().values():
        if entry.renamed_to is None:
            continue
        target = families()[entry.renamed_to]
        assert entry.name in target.renamed_from
        assert entry.renamed_since == target.first


def test_samples_and_their_parts() -> None:
    histogram = sample("vllm:iteration_tokens_total_bucket")
    assert histogram is not None and histogram.role == "bucket"
    assert histogram.family.name == "vllm:iteration_tokens_total"
    assert sample("vllm:iteration_tokens_total") is None
    doubled = sample("vllm:kv_offload_total_bytes_total")
    assert doubled is not None and doubled.family.type == "counter"
    underscored = sample("vllm_kv_cache_usage_perc")
    assert underscored is not None and underscored.role == "value"
    info = sample("vllm:cache_config_info")
    assert info is not None and info.family.first == version("0.5.5")


def test_hidden_ranges_lie_inside_the_ranges() -> None:
    for entry in families().values():
        for hidden in entry.hidden:
            assert any(
                r.generation == hidden.generation
                and hidden.span.first in r.span
                and hidden.span.last in r.span
                for r in entry.ranges
            )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("v0.9.2.post1", "0.9.2"),
        ("0.33", "0.33.0"),
        ("0.11.0rc2.dev12+gabc", "0.11.0"),
        ("main", None),
    ],
)
def test_versions(text: str, expected: str | None) -> None:
    found = parse_version(text)
    assert (None if found is None else str(found)) == expected


def test_generations() -> None:
    assert default_generation(version("0.7.3")) == "V0"
    assert default_generation(version("0.8.0")) == "V1"
