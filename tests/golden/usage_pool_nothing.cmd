memtrace replay captures/leak.pickle.zst --pool 'site=~no_such_function'
