: >file; memtrace analyze --all captures/oom_adam.pickle.zst -o file/x
