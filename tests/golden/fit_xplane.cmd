memtrace fit xplane/nnx_donated.xplane.pb.zst | head -n 11
