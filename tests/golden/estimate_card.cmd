echo '{"schema": "memtrace.estimate/1", "compared_with": "card", "total_bytes": 2000000000,
  "roles": {"parameters + gradients": 302137344, "optimizer state": 302137344}}' >estimate.json
memtrace diff recorded/twogpu.trace.zst --estimate estimate.json
