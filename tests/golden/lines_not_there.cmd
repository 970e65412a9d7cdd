memtrace lines captures/lines.pickle.zst --function stepp
echo $?
memtrace lines captures/lines.pickle.zst --device 3
echo $?
memtrace lines captures/churn_noctx.pickle.zst
echo $?
memtrace lines captures/lines.pickle.zst --function step --source | head -5
for site in "train train.py:77" "train, train.py"; do memtrace lines captures/leak.pickle.zst --function "$site" | sed -n 3p; done
