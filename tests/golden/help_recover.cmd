memtrace help recover
