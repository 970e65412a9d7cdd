memtrace fit
