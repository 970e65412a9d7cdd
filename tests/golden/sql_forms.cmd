memtrace sql - --csv --rows 3 "SELECT name, path, step, begin_event FROM phases ORDER BY phase" <captures/leak.pickle.zst
memtrace sql - --markdown --rows 3 "SELECT name, path, step, begin_event FROM phases ORDER BY phase" <captures/leak.pickle.zst
