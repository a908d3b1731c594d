/* attacks.h - each is a case, or several. */
#ifndef HOSTILE_ATTACKS_H
#define HOSTILE_ATTACKS_H

#include "siege.h"

void attack_strangers(struct siege *siege);
void attack_old_protocol(struct siege *siege);
void attack_never_ready(struct siege *siege);
void attack_hearsay(struct siege *siege);
void attack_unsubscribe(struct siege *siege);
void attack_presence(struct siege *siege);
void attack_verdict(struct siege *siege);
void attack_accusers(struct siege *siege);
void attack_window(struct siege *siege);
void attack_deaf(struct siege *siege);
void attack_topics(struct siege *siege);
void attack_finish(struct siege *siege);
void attack_figures(struct siege *siege);
void attack_old_life(struct siege *siege);
void attack_addresses(struct siege *siege);
void attack_address_of_two(struct siege *siege);
void attack_squat(struct siege *siege);
void attack_up(struct siege *siege);
/* mutants.c */
void attack_mutants(struct siege *siege);

#endif
