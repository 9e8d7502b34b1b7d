"""Who a series speaks of, and what it states."""

import json

import pytest

from parsers.prometheus.known import is_known
from parsers.prometheus.labels import series_name


@pytest.mark.parametrize(
    ("labels", "instance", "engine"),
    [
        ({}, None, None),
        ({"engine": "0", "instance": "a:8000"}, "a:8000", "0"),
        ({"engine": "007", "pod": "vllm-1"}, "vllm-1", "7"),
        ({"engine_index": "3", "k8s_pod_name": "vllm-2"}, "vllm-2", "3"),
        ({"engine": "", "instance": "", "pod": "vllm-1"}, "vllm-1", None),
        ({"instance": "a:8000", "pod": "vllm-1"}, "a:8000", None),
        ({"service_instance_id": "627cc493", "pod": "p"}, "627cc493", None),
        (
            {"instance": "node:8080", "ReplicaId": "r1", "engine": "prefill"},
            "node:8080/r1",
            "prefill",
        ),
    ],
)
def test_who_speaks(labels, instance, engine):
    name = series_name({"__name__": "up", **labels})
    assert (name.instance, name.engine) == (instance, engine)


def test_labels_are_compact_sorted_json_of_the_rest():
    name = series_name(
        {
            "__name__": "vllm:e2e_request_latency_seconds_bucket",
            "z": "é",
            "pod": "p",
            "instance": "a",
            "engine": "0",
            "le": "1.0",
            "model_name": "m",
        }
    )
    assert name.labels == '{"model_name":"m","pod":"p","z":"é"}'
    assert (name.metric, name.edge) == ("vllm:e2e_request_latency_seconds_bucket", 1.0)


@pytest.mark.parametrize(("text", "edge"), [("+Inf", float("inf")), ("0.3", 0.3), ("x", None)])
def test_edges(text, edge):
    name = series_name({"__name__": "b", "le": text})
    assert name.edge == edge
    assert ("le" in json.loads(name.labels)) == (edge is None)


@pytest.mark.parametrize(
    "name",
    [
        "vllm:num_requests_running",
        "vllm_num_requests_running",
        "process_start_time_seconds",
        "process_resident_memory_bytes",
        "up",
        "http_requests_total",
        "http_request_duration_seconds_bucket",
        "DCGM_FI_DEV_FB_USED",
        "nvidia_smi_memory_used_bytes",
        "nv_gpu_utilization",
    ],
)
def test_known(name):
    assert is_known(name)


@pytest.mark.parametrize(
    "name", ["go_goroutines", "node_cpu_seconds_total", "upstream", "", "x_vllm"]
)
def test_not_known(name):
    assert not is_known(name)


def test_cache_config_of_a_recorded_scrape(read, scrapes):
    name = next(name for name in scrapes if name.startswith("b-preemption-cliff-v0112"))
    parsed = read(scrapes[name], name)
    facts = dict(parsed.facts.select("key", "value").iter_rows())
    assert facts["cache_config.block_size"] == "32"
    assert facts["cache_config.num_gpu_blocks"] == "860"
    assert facts["cache_config.enable_prefix_caching"] == "True"
    assert set(parsed.facts["engine"]) == {"0"}
    stamp = parsed.samples["stamp"][0]
    assert set(parsed.facts["stamp"]) == {stamp}


def test_a_changed_configuration_is_stated_twice(read):
    text = (
        'vllm:cache_config_info{num_gpu_blocks="860"} 1 1795973250000\n'
        'vllm:cache_config_info{num_gpu_blocks="860"} 1 1795973265000\n'
        'vllm:cache_config_info{num_gpu_blocks="512"} 1 1795973280000\n'
    )
    facts = read(text).facts.select("key", "value", "stamp").rows()
    assert facts == [
        ("cache_config.num_gpu_blocks", "860", 1795973250.0),
        ("cache_config.num_gpu_blocks", "512", 1795973280.0),
    ]


def test_gpu_name_and_memory_from_dcgm(read):
    card = 'gpu="0",UUID="GPU-1",modelName="NVIDIA A100-SXM4-80GB",Hostname="node 1"'
    other = card.replace("GPU-1", "GPU-2").replace('gpu="0"', 'gpu="1"')
    text = "".join(
        f"DCGM_FI_DEV_FB_USED{{{labels}}} 72000\nDCGM_FI_DEV_FB_FREE{{{labels}}} 9050\n"
        f"DCGM_FI_DEV_GPU_UTIL{{{labels}}} 93\n"
        for labels in (card, other)
    )
    facts = read(text).facts.select("key", "value").rows()
    assert ("gpu.name", "NVIDIA A100-SXM4-80GB") in facts
    assert ("gpu.total_mib", "81050") in facts


def test_gpu_from_the_nvidia_smi_exporter(read):
    text = (
        'nvidia_smi_gpu_info{uuid="df6e",name="NVIDIA L4",driver_version="550.54"} 1\n'
        'nvidia_smi_memory_total_bytes{uuid="df6e"} 24152899584\n'
    )
    facts = read(text).facts.select("key", "value").rows()
    assert ("gpu.name", "NVIDIA L4") in facts
    assert ("gpu.total_mib", "23034") in facts
