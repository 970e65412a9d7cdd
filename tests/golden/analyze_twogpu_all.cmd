memtrace analyze --all captures/twogpu.pickle.zst
