memtrace info --strict captures/gpt_ring.pickle.zst
