memtrace analyze captures/oom_adam.pickle.zst
