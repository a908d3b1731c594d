#define _GNU_SOURCE /* sched_getaffinity, CPU_COUNT */
#include "runtime_threads_cpus.h"

#include <limits.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* "50000 100000": so much of each such time. "max 100000" limits nothing. */
static double quota_of(const char *path)
{
    double quota, period, cpus = INFINITY;
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return cpus;
    if (fscanf(file, "%lf %lf", &quota, &period) == 2 && quota > 0.0 &&
        period > 0.0)
        cpus = quota / period;
    (void)fclose(file);
    return cpus;
}

/* Of a group, and of those that it is in. group: "/a/b"; becomes "". */
static double least_quota(const char *root, char *group)
{
    char path[PATH_MAX];
    double least = INFINITY;
    for (;;) {
        (void)snprintf(path, sizeof path, "%s%s/cpu.max", root, group);
        least = fmin(least, quota_of(path));
        char *slash = strrchr(group, '/');
        if (slash == NULL)
            return least;
        *slash = '\0';
    }
}

double ls_cpus_of_cgroup(const char *membership, const char *root)
{
    char line[PATH_MAX / 2];
    double least = INFINITY;
    FILE *file = fopen(membership, "re");
    if (file == NULL)
        return least;
    while (fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, "0::", 3) == 0)
            least = least_quota(root, strcmp(line, "0::/") == 0 ? line + 4
                                                                : line + 3);
    }
    (void)fclose(file);
    return least;
}

/* More than CPU_SETSIZE are not asked for by anyone. */
static double affinity(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        return CPU_COUNT(&set);
    const long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (double)n : 1.0;
}

double ls_cpus_of_process(void)
{
    return fmin(affinity(),
                ls_cpus_of_cgroup("/proc/self/cgroup", "/sys/fs/cgroup"));
}
