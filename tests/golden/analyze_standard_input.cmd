memtrace analyze - <captures/leak.pickle.zst | head -1
