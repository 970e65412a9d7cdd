memtrace export folded captures/leak.pickle.zst -o leak.folded --json
