memtrace info --format foo captures/leak.pickle.zst
