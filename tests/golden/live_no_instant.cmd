memtrace live captures/seq2seq.pickle.zst --at peek
memtrace live captures/seq2seq.pickle.zst --at phase:
