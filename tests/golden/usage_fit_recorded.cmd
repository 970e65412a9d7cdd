memtrace fit captures/leak.pickle.zst --policy recorded
