memtrace analyze captures/gpt_split64.pickle.zst -q -o out --max-peak reserved=100GiB >/dev/null
grep -e '^|.*max-peak' -e '^| rule' out/summary.md
grep -o '<code>export PYTORCH[^<]*</code>' out/summary.md | head -1
