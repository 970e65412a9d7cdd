memtrace fleet --help
