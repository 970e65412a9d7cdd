memtrace diff captures/seq2seq.pickle.zst
