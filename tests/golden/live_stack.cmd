memtrace live captures/leakval.pickle.zst --at end --by stack
