memtrace analyze -q captures/twogpu.pickle.zst --limit 790MiB | grep -A2 "in total"; memtrace analyze -q captures/oom_adam.pickle.zst --limit 1670MiB | grep "in total"
