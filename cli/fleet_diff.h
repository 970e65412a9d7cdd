/* memtrace fleet diff: what another run of a job needs more, or less. */
#ifndef MT_CLI_FLEET_DIFF_H
#define MT_CLI_FLEET_DIFF_H

/* argv[0] is "diff". */
int mt_fleet_diff(int argc, char **argv);

#endif
