memtrace analyze
