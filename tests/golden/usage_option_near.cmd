memtrace analyze --jsn captures/oom_adam.pickle.zst
