memtrace live captures/resnet50_cap1900.pickle.zst --by module
