memtrace analyze recorded/mixed.trace.zst --max-peak device=100MiB --max-peak reserved=160MiB >out
echo "$?"
sed '/^$/q' out
memtrace analyze recorded/driver_only.trace.zst --max-peak device=1GiB --max-peak reserved=160MiB >out
echo "$?"
sed '/^$/q' out
