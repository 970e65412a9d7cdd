memtrace live captures/twogpu.pickle.zst --device 7
