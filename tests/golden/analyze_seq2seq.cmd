memtrace analyze captures/seq2seq.pickle.zst
