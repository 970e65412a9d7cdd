memtrace info recorded/communicator_ids.trace.zst; memtrace info --json recorded/communicator_ids.trace.zst
