memtrace fleet -q captures/ddp_leak_rank0.pickle.zst captures/ddp_leak_rank1.pickle.zst -o d >/dev/null && cat d/summary.md
memtrace fleet -q captures/ddp_leak_rank0.pickle.zst captures/ddp_leak_rank1.pickle.zst --max-imbalance 1% -o d >/dev/null; head -6 d/summary.md
