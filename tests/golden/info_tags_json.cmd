memtrace info --json tags/words_2_15.pickle.zst
