memtrace render policies graph_trees/several.pickle.zst -o trees.svg
grep -o '>device [^<]* requests' trees.svg
