: >file; memtrace import -q captures/oom_adam.pickle.zst -o file/t
