memtrace fleet captures/ddp_rank0.pickle.zst captures/ddp_rank1.pickle.zst --mesh dp:2 | head -8
