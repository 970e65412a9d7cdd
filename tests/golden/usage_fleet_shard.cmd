memtrace fleet captures --shard 2/1 -o x.mtsum; memtrace fleet captures --shard 1/2; memtrace fleet captures --shard 1/2 -o x; mkdir none; memtrace fleet none
