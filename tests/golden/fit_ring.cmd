memtrace fit captures/gpt_ring.pickle.zst --no-cards
