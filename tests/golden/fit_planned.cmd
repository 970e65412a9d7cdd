memtrace fit captures/leak.pickle.zst -p planned --no-cards
