memtrace help record
