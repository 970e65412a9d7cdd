memtrace tune captures/gpt_split64.pickle.zst
