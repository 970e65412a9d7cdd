memtrace recover missing.trace.zst
