memtrace replay captures/oom_adam.pickle.zst --policy recorded --policy pytorch --verify
