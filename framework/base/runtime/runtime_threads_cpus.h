/* runtime_threads_cpus.h - how much of the processors a process may use.
 *
 * Source: sched_getaffinity(2); the kernel's cgroup-v2.rst, "CPU Interface
 * Files": cpu.max. */
#ifndef LOCKSTEP_RUNTIME_THREADS_CPUS_H
#define LOCKSTEP_RUNTIME_THREADS_CPUS_H

/* What the control groups leave of them; infinity: they limit nothing, or are
 * not there, or are of version 1.
 * membership: as /proc/self/cgroup; root: as /sys/fs/cgroup. */
double ls_cpus_of_cgroup(const char *membership, const char *root);

/* The processors that this process may run on, or what its groups leave of
 * them. */
double ls_cpus_of_process(void);

#endif
