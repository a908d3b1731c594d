#include "version.h"

const char *version_text(void)
{
    return LOCKSTEP_VERSION;
}
