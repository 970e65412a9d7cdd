memtrace render address findings/embedding.pickle.zst -q -o - --x=events --size 600x400
