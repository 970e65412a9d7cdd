memtrace analyze categories/gpt_profile.pickle.zst
