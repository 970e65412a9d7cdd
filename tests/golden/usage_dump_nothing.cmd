memtrace dump
