memtrace diff --help
