set -e
memtrace analyze captures/gpt_default.pickle.zst --write-baseline base.json >/dev/null
memtrace analyze captures/gpt_default.pickle.zst --base base.json --max-regression 0% >out
sed '/^$/q' out
memtrace analyze captures/gpt_default.pickle.zst --base captures/gpt_default.pickle.zst --max-regression 0% >out
sed '/^$/q' out
