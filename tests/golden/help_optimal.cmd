memtrace optimal --help
