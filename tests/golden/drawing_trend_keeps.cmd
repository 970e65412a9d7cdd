drawing_list trend captures/keeps.pickle.zst -o -
