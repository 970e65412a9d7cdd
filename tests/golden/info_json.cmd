memtrace info --json captures/oom_adam.pickle.zst
