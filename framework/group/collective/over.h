/* over.h - why a generation is over, for the driver, which tells first causes
 * from what follows of them. */
#ifndef GROUP_OVER_H
#define GROUP_OVER_H

#include "lockstep/group.h"

/* Whether the generation is over, or about to be, and not because this rank has
 * left: another has, or is lost. Thread: any. */
bool group_is_over_by_another(ls_group *group);

#endif
