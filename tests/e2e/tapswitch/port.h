/* port.h - where a host is plugged in: the device eth0 in its network
 * namespace, which is there as long as the port is open. */
#ifndef TAPSWITCH_PORT_H
#define TAPSWITCH_PORT_H

/* Make eth0 in the namespace `ip netns` knows by this name; it is not up yet,
 * and has no address. Returns a descriptor to read and write frames at, which
 * does not block; -1: said why on stderr. */
int port_open(const char *namespace);

#endif
