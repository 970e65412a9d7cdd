memtrace live captures/leak.pickle.zst --at 1h; memtrace live captures/leak.pickle.zst --at 100s
