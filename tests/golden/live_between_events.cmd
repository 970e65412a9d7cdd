memtrace live captures/leak.pickle.zst --at 2s --by role
