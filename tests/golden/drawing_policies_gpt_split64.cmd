drawing_list policies captures/gpt_split64.pickle.zst -o -
