echo '{"schema": "memtrace.estimate/1", "source": "accelerate estimate-memory", "roles":
  {"parameters": 543123456, "gradients": 543123456, "optimizer state": 1086246912}}' >estimate.json
memtrace diff captures/gpt_default.pickle.zst --estimate estimate.json
