memtrace render flamechart captures/oom_adam.pickle.zst -o -
