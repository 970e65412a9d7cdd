memtrace live captures/leak.pickle.zst --at oom
