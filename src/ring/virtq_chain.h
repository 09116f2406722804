/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walking a descriptor chain.  For virtq.c only.
 */
#ifndef RING_VIRTQ_CHAIN_H
#define RING_VIRTQ_CHAIN_H

#include "ring/virtq.h"

/* Fills chain from the descriptors at head (< size).  0, or -ENOBUFS when chain->max is too small
 * for a chain of legal length. */
int virtq_chain_walk(struct virtq *vq, uint16_t head, struct virtq_chain *chain);

#endif
