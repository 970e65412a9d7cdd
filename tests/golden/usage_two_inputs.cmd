memtrace info captures/oom_adam.pickle.zst captures/graph.pickle.zst
