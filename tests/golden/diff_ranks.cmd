memtrace diff captures/ddp_leak_rank0.pickle.zst captures/ddp_leak_rank1.pickle.zst --at end
