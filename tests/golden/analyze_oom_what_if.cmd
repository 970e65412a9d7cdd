memtrace analyze -q captures/oom_adam.pickle.zst --limit 1670MiB | grep -A3 -e "^Died" -e "^Would" -e "^Out of memory"
