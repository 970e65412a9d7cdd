memtrace render policies captures/keeps.pickle.zst -o keeps.svg --json
memtrace render policies xplane/generate.xplane.pb.zst -o bfc.svg --json
memtrace render policies recorded/driver_only.trace.zst -o x.svg
