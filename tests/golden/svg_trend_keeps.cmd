memtrace render trend captures/keeps.pickle.zst -o -
