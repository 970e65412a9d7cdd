cp captures/../traces/v1-every-kind.zst t; printf x | dd of=t bs=1 seek=1500 conv=notrunc 2>/dev/null; memtrace info --quiet t >/dev/null
