"""The GPU of this machine, through NVML: `forensics ceiling --gpu auto`.

Needs the extra `gpu` (nvidia-ml-py); it asks the driver and touches nothing.
"""

import importlib
from typing import Any

from forensics.errors import UsageError


def gpu_here() -> tuple[str, float]:
    """Return device name and total memory in GiB of the smallest GPU of this machine.

    Raises:
        UsageError: the extra is not installed, or there is no NVIDIA driver or GPU.
    """
    try:
        nvml: Any = importlib.import_module("pynvml")
    except ImportError:
        raise UsageError(
            "--gpu auto asks the driver and needs the extra: pip install 'forensics[gpu]'"
        ) from None
    try:
        nvml.nvmlInit()
        found = [_one(nvml, index) for index in range(nvml.nvmlDeviceGetCount())]
        nvml.nvmlShutdown()
    except nvml.NVMLError as error:
        raise UsageError(f"--gpu auto: the driver does not answer ({error})") from None
    if not found:
        raise UsageError("--gpu auto: this machine has no NVIDIA GPU; name one with --gpu")
    # Ranks take the same share of each card: the smallest pool counts.
    return min(found, key=lambda item: item[1])


def _one(nvml: Any, index: int) -> tuple[str, float]:  # noqa: ANN401 - the module has no types
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    name = nvml.nvmlDeviceGetName(handle)
    text = name.decode() if isinstance(name, bytes) else str(name)
    memory = nvml.nvmlDeviceGetMemoryInfo(handle)
    return text, float(memory.total) / 2**30
