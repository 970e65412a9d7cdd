memtrace render flamechart captures/leak.pickle.zst -o x.svg --step 99
