/* The parts of a process of Perfetto besides its counters, one file each. */
#ifndef MT_CLI_PERFETTO_PARTS_H
#define MT_CLI_PERFETTO_PARTS_H

#include "perfetto_tracks.h"

/* Instants: peaks and others that have a profile; refused requests, retries, released caches. */
void mt_perfetto_add_instants(struct mt_perfetto_process *process);

/* Phases and steps as slices. */
void mt_perfetto_add_phases(struct mt_perfetto_process *process);

/* Live blocks at instants as heap profiles. */
void mt_perfetto_add_profiles(struct mt_perfetto_process *process);

#endif
