memtrace help analyze
