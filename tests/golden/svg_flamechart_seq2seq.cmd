memtrace render flamechart captures/seq2seq.pickle.zst -o -
