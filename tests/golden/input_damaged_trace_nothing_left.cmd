memtrace import -q captures/churn_gc.pickle.zst -o t >/dev/null; printf '\377' | dd of=t bs=1 seek=733 conv=notrunc 2>/dev/null; memtrace analyze t
