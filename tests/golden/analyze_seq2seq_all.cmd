memtrace analyze --all captures/seq2seq.pickle.zst
