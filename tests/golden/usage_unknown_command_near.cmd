memtrace hlep
