for command in $(memtrace --help | sed -n 's/^  \([a-z-]*\)  .*/\1/p' | grep -v '^help$') 'fleet diff'; do
    memtrace $command --help | awk -v command="$command" 'length > 79 { print command ": " $0 }'
done
memtrace --help | awk 'length > 79'
