zstd -qdc captures/oom_adam.pickle.zst | memtrace info -
