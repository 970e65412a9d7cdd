memtrace live --help
