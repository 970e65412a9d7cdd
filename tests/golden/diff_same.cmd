memtrace diff captures/graph.pickle.zst captures/graph.pickle.zst
