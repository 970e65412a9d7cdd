memtrace analyze captures/keeps.pickle.zst -o out --policies | grep policies
memtrace render policies captures/churn_ring.pickle.zst -o ring.svg -p rmm-pool --json -j 1
memtrace render policies captures/keeps.pickle.zst -o two.svg -p rmm-arena:arena_size=20MiB -p none --json -j 1
memtrace render policies captures/keeps.pickle.zst -o x.svg -p nothing
