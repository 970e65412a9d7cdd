memtrace analyze captures/gpt_ring.pickle.zst --max-peak allocated=16GiB --max-growth 1MiB/step --max-regression 2% >out
echo "$?"
sed '/^$/q' out
memtrace analyze captures/gpt_ring.pickle.zst --max-peak allocated=1GiB --max-growth 1MiB/step --max-peak device=1GiB --allow-not-evaluated >out
echo "$?"
sed '/^$/q' out
memtrace analyze captures/oom_adam.pickle.zst --max-peak allocated=16GiB --allow-not-evaluated >out
echo "$?"
sed '/^$/q' out
