memtrace --version
