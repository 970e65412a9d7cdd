memtrace analyze --all captures/churn_ring.pickle.zst | sed -n '/^Phases/,/^$/p'
