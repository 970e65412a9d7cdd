memtrace info
