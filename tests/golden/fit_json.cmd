memtrace fit captures/resnet50_cap1900.pickle.zst --policy pytorch --limit 1000MiB --json
