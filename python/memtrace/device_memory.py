"""Counters of PyTorch's allocator between two moments, on all devices."""
from __future__ import annotations

import os
import re
import sys
from typing import Any

# The control devices of the driver: a desktop or server, and the Linux of Windows. Both may exist
# although no GPU can be used, so NVML counts the devices.
_DRIVER_FILES = ("/dev/nvidiactl", "/dev/dxg")
# Jetson, which has no other GPU and, in older releases, no NVML.
_JETSON_FILES = ("/dev/nvhost-gpu", "/dev/nvgpu")
_NVML = "libnvidia-ml.so.1"
_VISIBLE = re.compile(r"\s*(\d|GPU-|MIG-)")


def machine_has_gpu() -> bool:
    """Whether this process can use a GPU. Does not start CUDA: a process that has started it cannot
    fork workers that use it."""
    # CUDA stops at the first entry of this list that does not name a device.
    if not _VISIBLE.match(os.environ.get("CUDA_VISIBLE_DEVICES", "0")):
        return False
    if any(os.path.exists(path) for path in _JETSON_FILES):
        return True
    return any(os.path.exists(path) for path in _DRIVER_FILES) and _nvml_count() > 0


def _nvml_count() -> int:
    """How many GPUs the driver reports, 0 without a driver that works."""
    import ctypes

    count = ctypes.c_uint()
    try:
        nvml = ctypes.CDLL(_NVML)
        if nvml.nvmlInit_v2():
            return 0
        found = count.value if nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)) == 0 else 0
        nvml.nvmlShutdown()
    except (OSError, AttributeError):
        return 0
    return found


def is_simulated() -> bool:
    """Whether `memtrace dry-run` runs this process."""
    return "MEMTRACE_DRY_RUN_FACT" in os.environ


def _cuda() -> Any:
    """torch.cuda if PyTorch is loaded and has started CUDA, else None."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    return cuda if cuda is not None and cuda.is_initialized() else None


def why_not_counted(metric: str) -> str:
    """Why PyTorch does not count a metric on this machine, or "". Its counters would be zero."""
    backend = getattr(_cuda(), "get_allocator_backend", lambda: "native")()
    if backend == "native" or (backend == "cudaMallocAsync" and metric == "allocated"):
        return ""
    advice = ": use metric='allocated'" if backend == "cudaMallocAsync" else ""
    return f"PyTorch does not count {metric} bytes with the allocator '{backend}'{advice}"


class Counters:
    """The peak and the change of a metric ("requested" or "allocated") since this moment.

    The counters are PyTorch's own, so both are exact. The peak is lost if the program itself calls
    torch.cuda.reset_peak_memory_stats."""

    def __init__(self, metric: str) -> None:
        self._key = f"{metric}_bytes.all"
        self._start: dict[int, int] = {}
        cuda = _cuda()
        for device in range(cuda.device_count()) if cuda else ():
            cuda.reset_peak_memory_stats(device)
            self._start[device] = self._value(cuda, device, "current")

    def _value(self, cuda: Any, device: int, which: str) -> int:
        return int(cuda.memory_stats(device).get(f"{self._key}.{which}", 0))

    def _since_start(self, which: str) -> dict[int, int]:
        cuda = _cuda()
        return {device: self._value(cuda, device, which) - self._start.get(device, 0)
                for device in range(cuda.device_count() if cuda else 0)}

    def peaks(self) -> dict[int, int]:
        """The peak of each device above the start. Empty if CUDA has not started."""
        return self._since_start("peak")

    def left(self) -> dict[int, int]:
        """What each device holds more than at the start."""
        return self._since_start("current")
