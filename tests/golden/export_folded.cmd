memtrace export folded captures/leak.pickle.zst --at end
