echo '{"schema": "memtrace.estimate/1", "total_bytes": 144703488, "compared_with": "reserved"}' >estimate.json
memtrace diff captures/leak.pickle.zst --estimate estimate.json
memtrace diff captures/leak.pickle.zst --estimate estimate.json --at end | head -n 1
memtrace diff recorded/driver_only.trace.zst --estimate estimate.json
