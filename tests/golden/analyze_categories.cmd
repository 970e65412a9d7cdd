memtrace analyze categories/mlp.pickle.zst
