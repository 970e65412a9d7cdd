memtrace render trend captures/leakval.pickle.zst -o x.svg --step 1
echo "$?"
memtrace render policies captures/leakval.pickle.zst -o x.svg --zoom phase:backward
echo "$?"
memtrace render timeline captures/leakval.pickle.zst -o x.svg --whole
