drawing_list icicle captures/seq2seq.pickle.zst -q -o - --size 600x400
