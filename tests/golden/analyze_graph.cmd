memtrace analyze --all captures/graph.pickle.zst
