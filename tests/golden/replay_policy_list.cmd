memtrace replay --policies
