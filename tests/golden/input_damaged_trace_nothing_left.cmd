memtrace import -q captures/churn_gc.pickle.zst -o t >/dev/null; printf x | dd of=t bs=1 seek=5000 conv=notrunc 2>/dev/null; memtrace analyze t
