memtrace analyze captures/leakval.pickle.zst --write-baseline base.json >/dev/null
mkdir ci
mv base.json ci
cat >ci/budget.toml <<'END'
base = "base.json"
[max_regression]
requested = "0%"
[max_regression.reserved]
limit = "1MiB"
warn = "0%"
END
memtrace analyze captures/leak.pickle.zst --budget ci/budget.toml --json >out
echo "$?"
sed -n '/^  "verdict"/,$p' out
