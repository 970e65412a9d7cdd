echo '{"schema": "memtrace.estimate/1",
  "modules": {"layer": 40000000, "layer[4]": 8000000, "head": 1000}}' >estimate.json
memtrace diff captures/leak.pickle.zst --estimate estimate.json
