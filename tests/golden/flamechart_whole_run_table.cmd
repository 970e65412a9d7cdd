memtrace render flamechart -q captures/churn_gc.pickle.zst -o - | grep -o '>[a-z_]* × [0-9]*<'
