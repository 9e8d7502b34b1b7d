"""Where a log names the GPU: kernel configuration paths, mixed devices, pasted tool output."""

import re
from collections.abc import Iterator

from parsers.vllm_log.interface import Fact, Fields, LogPattern, pattern, plain

_DEVICE_NAME = re.compile(r"device_name=(?P<name>[\w.+ -]+?)(?=,dtype|,block_shape|,|\.json|$)")
_SMI_NAME = re.compile(
    r"\|\s+\d+\s+(?P<name>(?:NVIDIA|Tesla|Quadro|GeForce|AMD)[\w .+-]*?)\s{2,}.*"
)
_SMI_LIST = re.compile(r"GPU \d+: (?P<name>[\w .+-]+?)(?: \(UUID: .*\))?\s*")
_COLLECTED = "GPU models and configuration:"  # of `collect_env`
_SMI_MEMORY = re.compile(r"\|.*?(?P<used>\d+)MiB\s*/\s*(?P<total>\d+)MiB.*")


def _kernel_config(message: str) -> Fields | None:
    names = [match["name"] for match in _DEVICE_NAME.finditer(message)]
    if not names:
        return None
    # The file name holds the device name with blanks replaced by underscores.
    return {"device_name": names[0].replace("_", " ").removesuffix(".json")}


def _name_row(message: str) -> Fields | None:
    bare = message.removeprefix(_COLLECTED).strip()
    match = _SMI_NAME.fullmatch(message) or _SMI_LIST.fullmatch(bare)
    return None if match is None else {"device_name": match["name"].strip()}


def _memory_row(message: str) -> Fields | None:
    match = _SMI_MEMORY.fullmatch(message)
    if match is None:
        return None
    return {"used_mib": int(match["used"]), "total_mib": int(match["total"])}


def _memory_facts(_message: str, fields: Fields) -> Iterator[Fact]:
    total = fields["total_mib"]
    if isinstance(total, int) and total > 0:
        yield Fact("gpu.total_gib", f"{total / 1024:g}")


def _mixed_facts(_message: str, fields: Fields) -> Iterator[Fact]:
    for name in plain(fields.get("devices", "")).split(", "):
        yield Fact("gpu.name", name)


_NAME = {"device_name": "gpu.name"}

PATTERNS: tuple[LogPattern, ...] = (
    LogPattern(
        name="moe_config_device",
        kind="moe_config_device",
        make_fields=_kernel_config,
        gates=(
            "Using configuration from ",
            "Using default MoE config. ",
            "Using default W8A8 Block FP8 kernel config. ",
            "Config file not found at ",
        ),
        since="0.5.0",
        until="0.33.0",
        facts=_NAME,
    ),
    pattern(
        "device_mismatch",
        "Detected different devices in the system: {devices:s}. Please make sure to set {:s}",
        since="0.7.3",
        until="0.33.0",
        make_facts=_mixed_facts,
    ),
    LogPattern(
        name="nvidia_smi_memory",
        kind="nvidia_smi",
        make_fields=_memory_row,
        gates=("|",),
        make_facts=_memory_facts,
    ),
    LogPattern(
        name="nvidia_smi_name",
        kind="nvidia_smi",
        make_fields=_name_row,
        gates=("|", "GPU "),
        facts=_NAME,
    ),
)
