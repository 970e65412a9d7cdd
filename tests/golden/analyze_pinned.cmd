memtrace analyze --all findings/pinned_more.pickle.zst
