memtrace replay captures/oom_adam.pickle.zst --policy pytorch:expandable_segmnts=True
