memtrace replay xplane/keras_conv.xplane.pb.zst -p bfc --verify
