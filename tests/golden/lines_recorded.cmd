memtrace lines recorded/twogpu.trace.zst --device 1
