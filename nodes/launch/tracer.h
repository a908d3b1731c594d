/* tracer.h - whether a debugger holds a process. */
#ifndef LOCKSTEP_TRACER_H
#define LOCKSTEP_TRACER_H

/* The pid of who traces the process; 0: nobody, or the system does not tell. */
long tracer_of(long pid);

#endif
