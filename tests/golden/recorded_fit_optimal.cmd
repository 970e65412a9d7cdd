memtrace fit --no-cards recorded/driver_only.trace.zst; memtrace optimal --json recorded/driver_only.trace.zst | grep requests; memtrace optimal recorded/driver_only.trace.zst
