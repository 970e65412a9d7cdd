memtrace help export
