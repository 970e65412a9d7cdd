memtrace fit captures/leak.pickle.zst -j 0
echo "$?"
memtrace replay captures/leak.pickle.zst --jobs 0
