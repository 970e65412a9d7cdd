memtrace live captures/seq2seq.pickle.zst --at phase:step#1/backwrd
