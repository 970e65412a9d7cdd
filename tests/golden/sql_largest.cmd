memtrace sql - --ask largest --set rows=4 <captures/leak.pickle.zst
