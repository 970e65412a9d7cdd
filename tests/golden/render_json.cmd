memtrace render icicle captures/graph.pickle.zst -o peak.svg --json
