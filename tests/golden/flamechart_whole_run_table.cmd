memtrace render flamechart -q --whole captures/churn_gc.pickle.zst -o - | grep -o '>[a-z_]* × [0-9]*<'
