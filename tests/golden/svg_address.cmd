memtrace render address findings/embedding.pickle.zst -q -o - --x=events --order=size --size 600x400
