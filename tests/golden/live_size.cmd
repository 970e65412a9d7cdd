memtrace live captures/streams.pickle.zst --at 150ms --by size
