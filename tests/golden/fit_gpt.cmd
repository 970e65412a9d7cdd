memtrace fit captures/gpt_default.pickle.zst -p pytorch -p pytorch:expandable_segments:True
