mkdir a b && cp captures/ddp_rank0.pickle.zst captures/ddp_rank1.pickle.zst a && cp captures/ddp_leak_rank1.pickle.zst b/ddp_rank1.pickle.zst && cp captures/ddp_rank0.pickle.zst b
memtrace fleet diff a b
memtrace fleet diff a a
memtrace fleet diff captures/leak.pickle.zst captures/keeps.pickle.zst
