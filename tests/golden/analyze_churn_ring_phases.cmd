memtrace analyze captures/churn_ring.pickle.zst | sed -n '/^Phases/,/^$/p'
