for limit in 620MiB 640MiB 660MiB; do
    memtrace analyze dry_run/gpt_batch4.trace.zst --max-peak reserved=$limit -o out >told
    echo "$?"
    sed '/^$/q' told
done
memtrace analyze dry_run/gpt_batch4.trace.zst --max-peak reserved=640MiB --strict -o out --json >told
echo "$?"
grep -A 18 '"gates"' told
cat out/junit.xml
printf '[max-peak]\nallocated = "530MiB"\n' >budget.toml
memtrace analyze dry_run/gpt_batch4.trace.zst --budget budget.toml >told
echo "$?"
sed '/^$/q' told
memtrace analyze dry_run/gpt_batch4.trace.zst --max-peak reserved=620MiB --strict | sed -n '/try:/,/^$/p'
