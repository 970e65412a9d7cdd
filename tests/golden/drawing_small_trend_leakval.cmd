drawing_list trend captures/leakval.pickle.zst -q -o - --size 600x400
