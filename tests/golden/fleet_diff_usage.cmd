memtrace fleet diff
memtrace fleet diff captures/leak.pickle.zst
memtrace fleet diff captures/leak.pickle.zst captures/missing.trace
memtrace fleet diff --job-a x captures/leak.pickle.zst captures/leak.pickle.zst
memtrace fleet diff --help
