memtrace analyze -q captures/lengths.pickle.zst --max-growth 1MiB/step | grep -A2 growth
