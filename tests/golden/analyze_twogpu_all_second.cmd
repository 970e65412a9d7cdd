memtrace analyze --all captures/twogpu.pickle.zst | sed -n '/^Device 1$/,$p'
