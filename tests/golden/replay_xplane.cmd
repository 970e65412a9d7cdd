memtrace replay xplane/generate.xplane.pb.zst -p bfc --verify
