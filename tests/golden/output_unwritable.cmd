memtrace import -q captures/oom_adam.pickle.zst -o no/such/folder/t
