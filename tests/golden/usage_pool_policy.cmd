memtrace replay captures/leak.pickle.zst -p cupy --pool 'size>1MiB'
