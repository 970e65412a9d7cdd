memtrace diff captures/leak.pickle.zst captures/leakval.pickle.zst --at phase:step#3/forward --json
