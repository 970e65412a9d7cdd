memtrace analyze -q xplane/keras_conv.xplane.pb.zst -o out >/dev/null && grep -A1 'class="answers"' out/report.html
