memtrace replay -q captures/streams.pickle.zst --policy pytorch --counters c.csv >/dev/null; head -n 20 c.csv; tail -n 3 c.csv
