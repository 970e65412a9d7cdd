memtrace render timeline captures/oom_adam.pickle.zst -o x.svg --theme blue
