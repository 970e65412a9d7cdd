memtrace tune captures/gpt_default.pickle.zst --limit 7GiB --json
