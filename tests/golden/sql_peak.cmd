memtrace sql - --ask peak <captures/leak.pickle.zst
