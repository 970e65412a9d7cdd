memtrace replay captures/oom_adam.pickle.zst --policy pytorch --limit lots
