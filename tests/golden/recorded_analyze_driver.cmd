memtrace analyze recorded/driver_only.trace.zst
