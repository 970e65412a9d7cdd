memtrace fleet --tune captures/twogpu.pickle.zst | sed '/^$/,$d'; memtrace fleet -q captures/ddp_leak_rank0.pickle.zst -o part.mtsum >/dev/null; memtrace fleet part.mtsum --tune
