memtrace lines captures/resnet50_cap1900.pickle.zst --own --sarif
