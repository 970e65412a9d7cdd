memtrace import
