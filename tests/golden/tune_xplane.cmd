memtrace tune xplane/generate.xplane.pb.zst
