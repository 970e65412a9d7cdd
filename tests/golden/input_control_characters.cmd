memtrace info "$(printf "a\033[31mb\nc")"
