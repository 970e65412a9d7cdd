touch f; memtrace analyze -q captures/leak.pickle.zst -o f >/dev/null
