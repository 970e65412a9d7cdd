memtrace optimal captures/twogpu.pickle.zst --time none
