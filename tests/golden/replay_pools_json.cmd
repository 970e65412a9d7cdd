memtrace replay captures/graph.pickle.zst --pool 'size>=20MiB' --json
