memtrace analyze --all recorded/mixed.trace.zst
