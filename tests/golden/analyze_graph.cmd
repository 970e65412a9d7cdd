memtrace analyze captures/graph.pickle.zst
