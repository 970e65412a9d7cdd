memtrace analyze --all captures/graph.pickle.zst
memtrace render address captures/graph.pickle.zst -q -o - | grep -oE '[^>]*\(CUDA graphs\)' | sort | uniq -c
