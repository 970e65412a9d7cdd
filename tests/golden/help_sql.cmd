memtrace help sql
