memtrace replay captures/gpt_default.pickle.zst -p planned
