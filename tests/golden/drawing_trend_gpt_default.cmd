drawing_list trend captures/gpt_default.pickle.zst -o -
