memtrace analyze -q --all recorded/communicators.trace.zst | sed -n '/^What to change/,/^$/p'
