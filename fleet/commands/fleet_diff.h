/* memtrace fleet diff: compares the memory that two runs of a job need. */
#ifndef MT_CLI_FLEET_DIFF_H
#define MT_CLI_FLEET_DIFF_H

/* argv[0] is "diff". */
int mt_fleet_diff(int argc, char **argv);

#endif
