memtrace replay captures/gpt_default.pickle.zst --policy pytorch --limit 1GiB
