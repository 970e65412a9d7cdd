memtrace render trend captures/gpt_default.pickle.zst -o -
