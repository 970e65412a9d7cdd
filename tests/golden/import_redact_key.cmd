head -c 32 /dev/zero > key; ln -s nothing link
memtrace import -q captures/leak.pickle.zst -o key --force --redact-key key
memtrace import -q captures/leak.pickle.zst -o t --redact-key link
