memtrace live captures/oom_adam.pickle.zst --at oom
