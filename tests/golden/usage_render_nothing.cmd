memtrace render
