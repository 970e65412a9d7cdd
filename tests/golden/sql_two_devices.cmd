memtrace sql - --ask peak <captures/twogpu.pickle.zst
