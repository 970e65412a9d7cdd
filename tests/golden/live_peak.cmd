memtrace live captures/gpt_ring.pickle.zst
