memtrace record --sample-hz 100000 true
