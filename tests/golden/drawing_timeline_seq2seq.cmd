drawing_list timeline captures/seq2seq.pickle.zst -o -
