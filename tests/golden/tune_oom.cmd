memtrace tune captures/oom_adam.pickle.zst --no-fits
