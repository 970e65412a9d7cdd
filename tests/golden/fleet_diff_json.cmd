memtrace fleet diff --json captures/leak.pickle.zst captures/keeps.pickle.zst
