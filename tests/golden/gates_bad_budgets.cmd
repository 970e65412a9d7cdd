try() {
    printf "$1" >budget
    memtrace analyze captures/leak.pickle.zst --budget budget
    echo "$?"
}
try ''
try 'schema = "memtrace.budget/2"\nfits = "1GiB"\n'
try '[max-peak]\nresreved = "1GiB"\n'
try 'max-pek = "1GiB"\n'
try 'fits = "1GiB"\nfits = "2GiB"\n'
try 'fits = 1GiB\n'
try 'fits = "\n'
try 'fits = true\n'
try '[fits]\nallow-not-evaluated = true\n'
try '[fits]\nlimit = "1GiB"\nwarn = "2GiB"\n'
try '{"fits": "1GiB"}'
try 'a.a.a.a.a.a.a.a.a = 1\n'
try '"\\u001b[31m" = 1\n'
try '\000'
memtrace analyze captures/leak.pickle.zst --budget nowhere.toml
echo "$?"
memtrace analyze captures/leak.pickle.zst --budget .
echo "$?"
