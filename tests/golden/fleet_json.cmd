memtrace fleet --json captures/ddp_rank0.pickle.zst captures/ddp_rank1.pickle.zst --max-peak reserved=6GiB --max-imbalance 5%
