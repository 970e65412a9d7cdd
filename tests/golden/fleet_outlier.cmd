memtrace fleet captures/ddp_leak_rank0.pickle.zst captures/ddp_leak_rank1.pickle.zst captures/oom_adam.pickle.zst
