memtrace optimal captures/gpt_default.pickle.zst --time none
