memtrace replay --json captures/oom_adam.pickle.zst --policy pytorch --verify
