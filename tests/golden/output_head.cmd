memtrace dump captures/oom_adam.pickle.zst | head -n 3
