memtrace analyze recorded/mixed.trace.zst
