memtrace analyze xplane/keras_conv.xplane.pb.zst
