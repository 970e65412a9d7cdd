memtrace render trend captures/leak.pickle.zst captures/keeps.pickle.zst -o -
