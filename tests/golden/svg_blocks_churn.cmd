memtrace render blocks captures/churn.pickle.zst -o -
