drawing_list icicle captures/seq2seq.pickle.zst -o - --size 1000x480
