: >file; memtrace analyze captures/oom_adam.pickle.zst -o file/x
