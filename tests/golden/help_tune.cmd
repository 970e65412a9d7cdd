memtrace tune --help
