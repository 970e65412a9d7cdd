memtrace info --format pytorch-snapshut captures/oom_adam.pickle.zst
