memtrace sql - --json --rows 2 "SELECT device, role, bytes, blocks FROM live_at_peak ORDER BY bytes DESC" <captures/leak.pickle.zst
