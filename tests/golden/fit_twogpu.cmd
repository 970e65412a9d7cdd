memtrace fit captures/twogpu.pickle.zst
