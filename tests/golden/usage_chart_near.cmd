memtrace render timline captures/oom_adam.pickle.zst -o x.svg
