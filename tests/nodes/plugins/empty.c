/* A library that is not a plugin. */
#include "lockstep/status.h"

LS_API int not_a_plugin(void);

LS_API int not_a_plugin(void)
{
    return LS_OK;
}
