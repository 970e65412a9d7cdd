memtrace dump --json captures/streams.pickle.zst | head -n 40
