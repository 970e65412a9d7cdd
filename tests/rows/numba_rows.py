"""Writes Numba's device memory as rows that memtrace reads:

    Rows.file = open("numba.csv", "w")
    cuda.set_memory_manager(Rows)      # before the first use of the GPU
"""
import time
import weakref

from numba.cuda.cudadrv.driver import NumbaCUDAMemoryManager


class Rows(NumbaCUDAMemoryManager):
    def row(self, op, addr, size):
        print(op, addr, size, time.time_ns(), self.context.device.id, sep=",", file=self.file)

    def initialize(self):
        super().initialize()
        if not self.file.tell():
            print("op,addr,bytes,t_ns,device", file=self.file)

    def memalloc(self, size):
        pointer = super().memalloc(size)
        self.row("alloc", pointer.device_pointer_value, size)
        memory = next(reversed(self.allocations.values()))  # until Numba frees it
        weakref.finalize(memory, self.row, "free", pointer.device_pointer_value, "").atexit = False
        return pointer
