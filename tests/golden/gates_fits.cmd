memtrace analyze captures/gpt_default.pickle.zst --fits 7GiB >out
echo "$?"
sed '/^$/q' out
memtrace analyze captures/gpt_default.pickle.zst --fits 7712MiB >out
echo "$?"
sed '/^$/q' out
