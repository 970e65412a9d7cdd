memtrace diff captures/gpt_default.pickle.zst captures/gpt_seed2.pickle.zst --at reserved-peak
