memtrace fleet captures/leak.pickle.zst -o -
