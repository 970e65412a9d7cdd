memtrace help import
