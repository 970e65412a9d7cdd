memtrace analyze --all recorded/every_allocation.trace.zst
