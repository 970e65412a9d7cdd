memtrace --help
