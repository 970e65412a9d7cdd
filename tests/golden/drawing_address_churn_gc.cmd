drawing_list address captures/churn_gc.pickle.zst -o -
