drawing_list icicle captures/seq2seq.pickle.zst -o -
