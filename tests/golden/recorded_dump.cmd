memtrace dump --to 40 recorded/driver_only.trace.zst; memtrace dump --from 300 --to 312 recorded/mixed.trace.zst; memtrace dump --json --from 300 --to 302 recorded/mixed.trace.zst
