memtrace help render
