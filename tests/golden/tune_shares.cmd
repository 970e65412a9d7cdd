memtrace tune -q recorded/communicators.trace.zst | head -n 5
