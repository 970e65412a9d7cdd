memtrace render icicle captures/graph.pickle.zst -o - --json
