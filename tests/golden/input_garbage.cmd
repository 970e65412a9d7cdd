printf "hello, world\n" >garbage; memtrace info garbage
