memtrace fit captures/seq2seq.pickle.zst --limit 4674MiB --no-cards
