printf "id,lower,upper,size\na,0,2,512\nb,0,4,512\nc,2,6,256\n" > small.csv
memtrace optimal small.csv --time none -o plan.csv && cat plan.csv
memtrace optimal --time none small.csv
memtrace optimal small.csv --time none --json | grep -v seconds
