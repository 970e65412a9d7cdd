memtrace analyze captures/twogpu.pickle.zst --write-baseline base.json >/dev/null
cat base.json
