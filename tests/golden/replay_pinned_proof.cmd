memtrace replay findings/pinned.pickle.zst -p pytorch -p 'pytorch --pool site=~(^|/)pinned\.py:12$'
