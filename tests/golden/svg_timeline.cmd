memtrace render timeline captures/oom_adam.pickle.zst -o - --size 800x500
