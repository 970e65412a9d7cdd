drawing_list flamechart captures/seq2seq.pickle.zst -q -o - --size 600x400
