/* codec_depth.h - how deep arrays and maps may be nested, empty ones counted.
 *
 * msgpack-c keeps 32 levels and fails at the next. */
#ifndef LOCKSTEP_CODEC_DEPTH_H
#define LOCKSTEP_CODEC_DEPTH_H

#define LS_CODEC_DEPTH_MAX 32

#endif
