memtrace --help >&-
