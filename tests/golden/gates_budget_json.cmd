memtrace analyze captures/leakval.pickle.zst --write-baseline base.json >/dev/null
mkdir ci
mv base.json ci
echo '{"base": "base.json", "max_regression": {"requested": "0%", "reserved": {"limit": "1MiB", "warn": "0%"}}}' >ci/budget.json
memtrace analyze captures/leak.pickle.zst --budget ci/budget.json --json >out
echo "$?"
sed -n '/^  "verdict"/,$p' out
