memtrace analyze --json - <findings/pinned.pickle.zst | grep '"proved_by": "'
