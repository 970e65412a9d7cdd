memtrace analyze --json findings/pinned.pickle.zst | sed -n '/"findings"/,/^      \]/p'
