memtrace info xplane/generate.xplane.pb.zst
