echo '{"schema": "memtrace.estimate/1", "source": null, "compared_with": "card", "total_bytes": 2000000000,
  "roles": {"parameters + gradients": 302137344}, "modules": {"layer": 40000000}}' >estimate.json
memtrace diff recorded/twogpu.trace.zst --device 1 --estimate estimate.json --json
