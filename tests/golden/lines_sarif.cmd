memtrace lines captures/resnet50_cap1900.pickle.zst --own --sarif
memtrace lines captures/resnet50_cap1900.pickle.zst --sarif --json 2>&1
echo $?
