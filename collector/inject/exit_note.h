/* Records the exit status of the process in its trace's header. */
#ifndef MT_INJECT_EXIT_NOTE_H
#define MT_INJECT_EXIT_NOTE_H

/* Call it when the collector starts; later calls do nothing. */
void mt_exit_note_begin(void);

#endif
