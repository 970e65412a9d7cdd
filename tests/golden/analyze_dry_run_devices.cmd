memtrace analyze dry_run/two_devices.trace.zst | sed -n '1,/^Device 1:/p'
memtrace analyze dry_run/two_devices.trace.zst --json | sed -n '/"peak_orders"/,/}/p'
