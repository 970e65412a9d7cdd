memtrace analyze --all categories/gpt_profile.pickle.zst | grep -A1 -E '^Change'
