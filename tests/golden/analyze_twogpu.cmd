memtrace analyze captures/twogpu.pickle.zst
