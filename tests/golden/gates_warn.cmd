memtrace analyze captures/leakval.pickle.zst --max-peak allocated=1GiB,warn=200MiB --max-growth 16MiB/step,warn=1MiB >out
echo "$?"
sed '/^$/q' out
