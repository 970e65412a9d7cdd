memtrace --version
memtrace version
memtrace -V
