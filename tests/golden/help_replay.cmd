memtrace help replay
