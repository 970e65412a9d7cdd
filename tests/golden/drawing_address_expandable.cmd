drawing_list address captures/churn_exp_ring.pickle.zst -o - --x=events
