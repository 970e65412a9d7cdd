memtrace render address captures/churn.pickle.zst -o a.svg --order=random
