memtrace info recorded/mixed.trace.zst; memtrace info recorded/every_allocation.trace.zst; memtrace info --json recorded/driver_only.trace.zst
