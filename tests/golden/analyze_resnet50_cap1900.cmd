memtrace analyze --all captures/resnet50_cap1900.pickle.zst
