memtrace analyze --limit 0 captures/leak.pickle.zst
