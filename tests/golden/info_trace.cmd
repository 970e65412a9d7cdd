memtrace import -q captures/oom_adam.pickle.zst -o t >/dev/null; memtrace info t
