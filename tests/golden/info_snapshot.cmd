memtrace info captures/oom_adam.pickle.zst
