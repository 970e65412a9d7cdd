memtrace analyze captures/gpt_split64.pickle.zst --base captures/gpt_default.pickle.zst --max-regression 2% | sed '/^$/q'
memtrace analyze captures/gpt_split64.pickle.zst --base captures/gpt_default.pickle.zst --max-regression 2% >/dev/null
