memtrace live captures/leak.pickle.zst --at end --by phase
