memtrace fit captures/seq2seq.pickle.zst --limit 4676MiB --no-cards
