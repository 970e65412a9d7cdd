memtrace help dump
