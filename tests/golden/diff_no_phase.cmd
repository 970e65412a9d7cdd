memtrace diff captures/seq2seq.pickle.zst captures/leak.pickle.zst --at phase:enc
