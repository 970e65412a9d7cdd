memtrace analyze captures/gpt_ring.pickle.zst --write-baseline base.json >/dev/null
memtrace analyze captures/gpt_default.pickle.zst --base base.json --max-regression 2% | sed '/^$/q'
