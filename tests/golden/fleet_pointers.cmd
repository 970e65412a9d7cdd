mkdir t && cp captures/ddp_rank0.pickle.zst captures/ddp_rank1.pickle.zst t && memtrace fleet t --summarize >/dev/null && cp captures/ddp_rank0.pickle.zst t/late.pickle.zst && memtrace analyze t
memtrace analyze t/ddp_rank0.pickle.zst t/late.pickle.zst nothing
memtrace info captures 2>&1 | tail -2
