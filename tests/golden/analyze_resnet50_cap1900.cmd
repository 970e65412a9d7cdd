memtrace analyze captures/resnet50_cap1900.pickle.zst
