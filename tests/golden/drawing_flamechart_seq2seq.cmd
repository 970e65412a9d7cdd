drawing_list flamechart captures/seq2seq.pickle.zst -o -
