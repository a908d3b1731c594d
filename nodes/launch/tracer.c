#include "tracer.h"

#include <stdio.h>

long tracer_of(long pid)
{
    char line[256];
    long tracer = 0;
    (void)snprintf(line, sizeof line, "/proc/%ld/status", pid);
    FILE *file = fopen(line, "re");
    if (file == NULL)
        return 0;
    while (fgets(line, sizeof line, file) != NULL &&
           sscanf(line, "TracerPid: %ld", &tracer) != 1)
        continue;
    (void)fclose(file);
    return tracer;
}
