memtrace replay captures/oom_adam.pickle.zst --policy cupy:limt=8GiB
