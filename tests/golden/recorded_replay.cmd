for run in mixed driver_only; do memtrace replay --verify recorded/$run.trace.zst; done; memtrace replay -p bfc -p pytorch --json recorded/driver_only.trace.zst | head -n 50
