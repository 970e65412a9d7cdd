memtrace analyze --all captures/oom_adam.pickle.zst
