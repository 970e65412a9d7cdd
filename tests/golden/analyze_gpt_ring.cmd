memtrace analyze captures/gpt_ring.pickle.zst
