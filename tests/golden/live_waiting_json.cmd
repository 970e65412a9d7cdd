memtrace live captures/streams.pickle.zst --at 596 --by size --json
