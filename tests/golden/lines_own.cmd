memtrace lines captures/resnet50_cap1900.pickle.zst | head -16
memtrace lines captures/resnet50_cap1900.pickle.zst --own
memtrace lines captures/resnet50_cap1900.pickle.zst --own --json | grep '"origin"' | sort -u
