memtrace analyze -q recorded/paged_pool.trace.zst | head -n 2
