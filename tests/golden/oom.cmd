# One case of fixtures/oom, as a log; what analyze says about such a file; texts without a message.
sed -n '/^=== several_ranks /,/^=== later_kill /p' oom/cases.txt | grep -v '^===' >error.log
memtrace oom error.log
memtrace oom --json - <error.log
memtrace analyze error.log
echo "status $?"
sed -n '/^=== torch_2_pools /,/^=== torch_2_pools_too/p' oom/cases.txt | memtrace oom
sed -n '/^=== vllm_no_blocks_parts /,/^=== vllm_no_blocks_too/p' oom/cases.txt | memtrace oom
sed -n '/^=== slurm /,/^=== slurm_old/p' oom/cases.txt | memtrace oom
echo all is well | memtrace oom
echo "status $?"
memtrace oom missing.log
