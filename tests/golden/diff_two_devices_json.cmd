memtrace diff recorded/twogpu.trace.zst captures/twogpu.pickle.zst --json
