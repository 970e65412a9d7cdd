drawing_list blocks captures/seq2seq.pickle.zst -q -o - --size 600x400
