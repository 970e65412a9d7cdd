memtrace tune captures/gpt_expandable.pickle.zst --no-fits
