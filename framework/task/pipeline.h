/* pipeline.h - parts that run one after the other. */
#ifndef PIPELINE_H
#define PIPELINE_H

#include "step.h"

struct pipeline {
    struct part **parts; /* own */
    size_t n;
    size_t begun; /* parts whose turn has begun in this iteration */
    struct ls_failure outcome;
};

/* Every forward half in order, up to the first error. */
void ls_pipeline_forward(struct pipeline *pipeline, struct lane *lane,
                         ls_step *parent);

/* Every backward half of what was begun, in reverse. */
void ls_pipeline_back(struct pipeline *pipeline);

bool ls_pipeline_suspended(const struct pipeline *pipeline);

#endif
