memtrace replay captures/gpt_default.pickle.zst --policy pytorch --policy pytorch:expandable_segments=True --policy pytorch:max_split_size_mb=64
