memtrace analyze --all -q graph_trees/gpt2.pickle.zst | grep -A1 "^  replay"
memtrace analyze --all -q graph_trees/several.pickle.zst | grep -A1 "^  replay"
memtrace replay -q graph_trees/several.pickle.zst --verify
memtrace replay -q graph_trees/several.pickle.zst -p pytorch:max_split_size_mb:20
memtrace analyze --all -q graph_trees/several.pickle.zst --policy pytorch:expandable_segments:True | grep -A1 "gaps are left out"
