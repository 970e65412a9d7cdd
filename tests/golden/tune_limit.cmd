memtrace tune captures/gpt_default.pickle.zst --limit 5GiB --no-fits
