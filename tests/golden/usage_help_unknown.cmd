memtrace help frobnicate
