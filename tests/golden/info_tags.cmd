memtrace info tags/words_2_15.pickle.zst
