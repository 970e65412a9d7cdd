cp captures/../workloads/lines.py .
memtrace lines captures/lines.pickle.zst --source
