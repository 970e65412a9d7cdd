memtrace --help >/dev/full
