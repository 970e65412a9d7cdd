memtrace analyze skipped/alloc.pickle.zst | head -n 8; memtrace info --strict skipped/alloc.pickle.zst; memtrace replay --verify skipped/free_completed.pickle.zst | tail -n 3
memtrace analyze --all -q skipped/free_completed.pickle.zst | grep -A3 "^How far"
