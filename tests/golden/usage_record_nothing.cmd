memtrace record
