/* version.h - which lockstep this is. */
#ifndef LOCKSTEP_VERSION_H
#define LOCKSTEP_VERSION_H

const char *version_text(void);

#endif
