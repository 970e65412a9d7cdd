memtrace sql
memtrace sql captures/leak.pickle.zst
memtrace sql captures/leak.pickle.zst "SELECT 1" --ask peak
memtrace sql captures/leak.pickle.zst --ask peaks
memtrace sql captures/leak.pickle.zst "SELECT 1" --csv --markdown
memtrace sql captures/leak.pickle.zst "SELECT 1" --set 1
memtrace sql captures/leak.pickle.zst "SELECT 1" --rows 0
memtrace sql - "SELECT * FROM missing" <captures/leak.pickle.zst
memtrace sql - "DELETE FROM peaks" <captures/leak.pickle.zst
memtrace sql - "SELECT :a" <captures/leak.pickle.zst
memtrace sql - "SELEC 1" <captures/leak.pickle.zst
memtrace sql nothing.db "SELECT 1"
