memtrace analyze --json recorded/mixed.trace.zst | sed -n '/"level"/,$p'
