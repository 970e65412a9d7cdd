/* Tables: phases and steps, sites and stacks at the peak. */
#include "analyze_output.h"
#include "text_table.h"
#include "units.h"

void mt_tell_phases(const struct mt_teller *teller) { (void)teller; }
void mt_tell_sites(const struct mt_teller *teller) { (void)teller; }
