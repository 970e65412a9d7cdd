memtrace render diff captures/leak.pickle.zst -o -
