memtrace analyze --all captures/twogpu.pickle.zst | sed '/^Device 1$/,$d'
