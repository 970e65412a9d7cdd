drawing_list blocks captures/churn.pickle.zst -o -
