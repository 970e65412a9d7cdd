#!/usr/bin/env python3
"""Whether the machine has a GPU that a test can use: this decides about dry runs of the pytest plugin."""
import ctypes
import os
import types
import unittest
from unittest import mock

from support import main

from memtrace import device_memory


def nvml(count, status=0):
    """A driver with this many devices; its functions return `status`."""
    def count_devices(reference):
        reference._obj.value = count
        return status

    return types.SimpleNamespace(nvmlInit_v2=lambda: status, nvmlDeviceGetCount_v2=count_devices,
                                 nvmlShutdown=lambda: status)


def has_gpu(files=("/dev/nvidiactl",), library=None, visible=None):
    """The answer with these files in /dev, this NVML, and CUDA_VISIBLE_DEVICES."""
    variables = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    with mock.patch.object(os.path, "exists", lambda path: path in files), \
            mock.patch.object(ctypes, "CDLL", side_effect=[library] if library else OSError), \
            mock.patch.dict(os.environ, variables):
        if visible is None:
            os.environ.pop("CUDA_VISIBLE_DEVICES", None)
        return device_memory.machine_has_gpu()


class MachineHasGpu(unittest.TestCase):
    def test_the_driver(self):
        self.assertTrue(has_gpu(library=nvml(1)))
        self.assertTrue(has_gpu(files=["/dev/dxg"], library=nvml(1)))
        self.assertFalse(has_gpu(files=[], library=nvml(1)))  # the library of an image for GPUs

    def test_a_driver_that_does_not_work(self):
        self.assertFalse(has_gpu())  # no library: a container without the toolkit, or WSL without a GPU
        self.assertFalse(has_gpu(library=nvml(0)))
        self.assertFalse(has_gpu(library=nvml(1, status=18)))  # kernel module and library differ
        self.assertFalse(has_gpu(library=types.SimpleNamespace()))

    def test_jetson(self):
        self.assertTrue(has_gpu(files=["/dev/nvgpu"]))

    def test_devices_that_are_hidden(self):
        for hidden in ("", "-1", "none", " ,0"):
            self.assertFalse(has_gpu(library=nvml(1), visible=hidden), hidden)
        for visible in ("0", " 1,0", "GPU-4b2a", "MIG-4b2a"):
            self.assertTrue(has_gpu(library=nvml(1), visible=visible), visible)


if __name__ == "__main__":
    main()
