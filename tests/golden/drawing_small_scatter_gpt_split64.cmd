drawing_list scatter captures/gpt_split64.pickle.zst -q -o - --size 600x400
