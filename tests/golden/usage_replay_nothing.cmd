memtrace replay
