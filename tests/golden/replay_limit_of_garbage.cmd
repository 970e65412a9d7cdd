memtrace replay --json captures/churn_gc.pickle.zst | grep -A2 limit_; memtrace render timeline -q captures/churn_gc.pickle.zst -o - | grep -c 'memory limit'
