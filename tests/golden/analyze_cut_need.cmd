head -c 19400 recorded/churn_expandable.trace.zst >cut; memtrace analyze -q cut | head -2
