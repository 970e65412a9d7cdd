memtrace recover
