memtrace render timeline captures/seq2seq.pickle.zst -o -
