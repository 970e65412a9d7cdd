memtrace lines captures/lines.pickle.zst --function cross_entropy --source --json
