memtrace fleet captures/ddp_rank0.pickle.zst captures/ddp_rank1.pickle.zst --tune | sed '/^$/,$d'; memtrace fleet captures/ddp_rank0.pickle.zst captures/missing.trace --tune | sed '/^$/,$d'
