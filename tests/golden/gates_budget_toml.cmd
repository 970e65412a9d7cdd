cat >budget.toml <<'END'
schema = "memtrace.budget/1" # comment
base = "base.json"

[max-peak]
reserved = "10GiB"
allocated = { }
END
memtrace analyze captures/leakval.pickle.zst --budget budget.toml
cat >budget.toml <<'END'
schema = "memtrace.budget/1"
[max-peak]
reserved = "1GiB"
allocated.warn = "128MiB"
[max-growth]
limit = '1MiB'
warn = "64KiB"
[max-fragmentation]
limit = "25%"
[fits]
limit = 1073741824
END
memtrace analyze captures/leakval.pickle.zst --budget budget.toml >out
echo "$?"
sed '/^$/q' out
