memtrace analyze --all captures/gpt_ring.pickle.zst
