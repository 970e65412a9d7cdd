memtrace live modules/bert.trace.zst --by module --json
