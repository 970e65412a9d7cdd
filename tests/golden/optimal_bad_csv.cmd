printf "lower,upper,size\n0,2,5\n4,2,5\n" > bad.csv
memtrace optimal bad.csv
