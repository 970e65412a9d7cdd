memtrace analyze captures/twogpu.pickle.zst --max-peak reserved=600MiB --base captures/leak.pickle.zst --max-regression 5% >out
echo "$?"
sed '/^$/q' out
