memtrace analyze captures/ddp_leak_rank1.pickle.zst -o report >/dev/null
cat report/summary.md
