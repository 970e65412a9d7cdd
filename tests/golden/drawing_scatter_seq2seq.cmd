drawing_list scatter captures/seq2seq.pickle.zst -o -
