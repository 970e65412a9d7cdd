memtrace diff captures/graph.pickle.zst recorded/driver_only.trace.zst
