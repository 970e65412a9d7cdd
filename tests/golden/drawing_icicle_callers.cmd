drawing_list icicle captures/seq2seq.pickle.zst -q -o - --size 700x500 | grep holder-
