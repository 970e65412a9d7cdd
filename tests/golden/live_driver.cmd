memtrace live recorded/driver_only.trace.zst --at 21
