memtrace render diff captures/gpt_default.pickle.zst captures/gpt_split64.pickle.zst -o -
