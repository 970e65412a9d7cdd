memtrace help oom
