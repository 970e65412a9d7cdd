memtrace analyze --json captures/oom_adam.pickle.zst | sed 's/^  //'
