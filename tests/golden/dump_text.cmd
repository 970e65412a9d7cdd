memtrace dump captures/streams.pickle.zst
