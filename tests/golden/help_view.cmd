memtrace help view
