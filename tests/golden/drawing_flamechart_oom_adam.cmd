drawing_list flamechart captures/oom_adam.pickle.zst -o -
