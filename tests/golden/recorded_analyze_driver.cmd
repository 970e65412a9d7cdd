memtrace analyze --all recorded/driver_only.trace.zst
