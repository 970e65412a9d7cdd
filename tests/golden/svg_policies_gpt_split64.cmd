memtrace render policies captures/gpt_split64.pickle.zst -o -
