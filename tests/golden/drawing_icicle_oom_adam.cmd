drawing_list icicle captures/oom_adam.pickle.zst -o -
