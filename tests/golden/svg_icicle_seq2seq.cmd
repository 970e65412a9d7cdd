memtrace render icicle captures/seq2seq.pickle.zst -o -
