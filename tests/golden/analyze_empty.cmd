python3 -c "import pickle; pickle.dump({\"segments\": [], \"device_traces\": [[]], \"external_annotations\": []}, open(\"empty.pickle\", \"wb\"), 4)"; memtrace analyze empty.pickle
