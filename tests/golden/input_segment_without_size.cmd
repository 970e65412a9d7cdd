python3 -c "import pickle; pickle.dump({\"segments\": [{\"device\": 0, \"address\": 4096, \"blocks\": []}], \"device_traces\": [[]]}, open(\"t\", \"wb\"), 4)"; memtrace replay t
