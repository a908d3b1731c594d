/* lockstep.h - all of Lockstep's public headers, lowest layer first. */
#ifndef LOCKSTEP_LOCKSTEP_H
#define LOCKSTEP_LOCKSTEP_H

/* base */
#include "lockstep/codec.h"
#include "lockstep/config.h"
#include "lockstep/crew.h"
#include "lockstep/fiber.h"
#include "lockstep/log.h"
#include "lockstep/queue.h"
#include "lockstep/random.h"
#include "lockstep/record.h"
#include "lockstep/runtime.h"
#include "lockstep/signal.h"
#include "lockstep/simulation.h"
#include "lockstep/stats.h"
#include "lockstep/status.h"
#include "lockstep/trace.h"

/* state */
#include "lockstep/blobs.h"
#include "lockstep/checkpoint.h"
#include "lockstep/checkpoint_step.h"
#include "lockstep/disk.h"
#include "lockstep/file.h"
#include "lockstep/journal.h"
#include "lockstep/vault.h"

/* bus */
#include "lockstep/call.h"
#include "lockstep/channel.h"
#include "lockstep/event.h"
#include "lockstep/network.h"
#include "lockstep/node.h"
#include "lockstep/payload.h"
#include "lockstep/room.h"
#include "lockstep/security.h"

/* task */
#include "lockstep/context.h"
#include "lockstep/task.h"

/* job */
#include "lockstep/job.h"
#include "lockstep/place.h"

/* device */
#include "lockstep/device.h"

/* group */
#include "lockstep/barrier.h"
#include "lockstep/group.h"

/* learner */
#include "lockstep/learner.h"
#include "lockstep/learner_info.h"
#include "lockstep/minibatch_ring.h"

/* driver */
#include "lockstep/device_group.h"
#include "lockstep/driver.h"
#include "lockstep/loader.h"
#include "lockstep/metrics.h"
#include "lockstep/model.h"
#include "lockstep/sampler.h"
#include "lockstep/trainer.h"

/* middleware */
#include "lockstep/middleware.h"

/* what a plugin exports */
#include "lockstep/plugin.h"

#endif
