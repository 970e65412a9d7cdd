memtrace replay captures/leak.pickle.zst --pool 'embedding'
