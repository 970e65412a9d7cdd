memtrace render address captures/churn_gc.pickle.zst -o -
