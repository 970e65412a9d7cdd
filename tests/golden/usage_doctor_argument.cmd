memtrace doctor now
