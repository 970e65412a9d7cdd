"""Writes what CuPy's memory pool does as rows that memtrace reads:

    with Rows("cupy.csv"):
        ...
"""
import time

import cupy


class Rows(cupy.cuda.MemoryHook):
    name = "memtrace rows"

    def __init__(self, path):
        self.file = open(path, "w", encoding="utf-8")
        print("op,addr,bytes,block_bytes,t_ns,device,stream", file=self.file)

    def malloc_postprocess(self, device_id, size, mem_size, mem_ptr, pmem_id):
        print("alloc" if mem_ptr else "alloc_failed", mem_ptr, size, mem_size, time.time_ns(), device_id,
              cupy.cuda.get_current_stream().ptr, sep=",", file=self.file)

    def free_preprocess(self, device_id, mem_size, mem_ptr, pmem_id):
        print("free", mem_ptr, "", "", time.time_ns(), device_id, "", sep=",", file=self.file)
