memtrace render icicle captures/oom_adam.pickle.zst -o -
