/* service_sabotage.h - a service cluster that is broken on purpose: to see that
 * tests and sweeps find it. */
#ifndef LOCKSTEP_SERVICE_SABOTAGE_H
#define LOCKSTEP_SERVICE_SABOTAGE_H

enum service_sabotage {
    SERVICE_SABOTAGE_NONE,
    SERVICE_SABOTAGE_SAME_ATTEMPT,  /* a work that is given out again is not
                                     * told from what it was before */
    SERVICE_SABOTAGE_STALE_SAMPLES, /* a collector keeps what it has ready over
                                     * the end of its work */
    SERVICE_SABOTAGE_FROM_SCRATCH,  /* a learner that takes a work over begins
                                     * anew */
    SERVICE_SABOTAGE_NO_FENCING,    /* a learner that was replaced still commits
                                     */
    SERVICE_SABOTAGE_OWN_WEIGHTS    /* a rank learns on from weights of its own,
                                     * and nobody compares them */
};

#endif
