memtrace analyze xplane/nnx_donated.xplane.pb.zst
