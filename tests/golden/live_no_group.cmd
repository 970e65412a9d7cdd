memtrace live captures/seq2seq.pickle.zst --by sites
