memtrace analyze recorded/every_allocation.trace.zst
