memtrace replay captures/oom_adam.pickle.zst --policy pytroch; echo $?
memtrace analyze captures/oom_adam.pickle.zst --policy nothing; echo $?
