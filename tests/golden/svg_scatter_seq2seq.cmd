memtrace render scatter captures/seq2seq.pickle.zst -o -
