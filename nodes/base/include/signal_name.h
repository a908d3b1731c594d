/* signal_name.h - signals as people know them. */
#ifndef LOCKSTEP_SIGNAL_NAME_H
#define LOCKSTEP_SIGNAL_NAME_H

/* "SIGKILL"; "a signal" for one without a name here. */
const char *signal_name(int signal);

#endif
