# The stand-ins for a GPU and for PyTorch, beside the program.
build=$(dirname "$(readlink -f bin/memtrace)")
export MEMTRACE_DRY_RUN_SITE=own LD_LIBRARY_PATH=$build/standin MEMTRACE_CUPTI=$build/standin/libcupti.so.13
memtrace dry-run --jobs 2 --device "RTX 4090" --sweep n=50..200*2,0,x -o out -- "$build/standin/torch_program" "$build/standin/torch" 1 {n}
memtrace dry-run --sweep code=0,3 --sweep word=a/b --max-peak reserved=1MiB -o other -- sh -c 'echo "{word} $1"; exec "$0" exit "$1"' "$build/tests/recorded" {code}
echo "status $?"
ls out other | grep -v png
echo "drawing"
grep -o '<title>[^<]*\|<text[^>]*>[^<]*' out/sweep.svg | sed 's/<text[^>]*>/text /'
