memtrace analyze --all recorded/driver_only.trace.zst
memtrace analyze --all -q recorded/address_space.trace.zst | sed -n "1,4p;/^Outside/,/^  driver:res/p"
