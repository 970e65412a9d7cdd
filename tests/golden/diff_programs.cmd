memtrace diff captures/leak.pickle.zst captures/twogpu.pickle.zst
