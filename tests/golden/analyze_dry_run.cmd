memtrace analyze dry_run/gpt_batch4.trace.zst
memtrace analyze dry_run/gpt_batch4.trace.zst --json | sed -n '/"peak_orders"/,/}/p'
