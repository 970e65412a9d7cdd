memtrace render blocks captures/streams.pickle.zst -o - --whole --x=events
