/* memtrace fleet diff: how much more or less memory another run of a job needs. */
#ifndef MT_CLI_FLEET_DIFF_H
#define MT_CLI_FLEET_DIFF_H

/* argv[0] is "diff". */
int mt_fleet_diff(int argc, char **argv);

#endif
