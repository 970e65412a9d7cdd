memtrace fit --help
