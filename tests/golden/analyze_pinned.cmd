memtrace analyze findings/pinned_more.pickle.zst
