zstd -qdc captures/oom_adam.pickle.zst | head -c 50000 >cut.pickle; memtrace info cut.pickle
