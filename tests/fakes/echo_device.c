/* SPDX-License-Identifier: Apache-2.0 */
#include "fakes/echo_device.h"

#include "base/iov.h"

static void finish(struct echo_device *dev, struct echo_slot *slot)
{
	virtq_push(dev->vq, &slot->token, slot->written_bytes);
	slist_push_back(&dev->free, &slot->node);
	dev->nfree++;
	queue_room_freed(&dev->vq->queue);
}

static uint32_t echo(const struct virtq_chain *c)
{
	const struct iovec *in = c->iov + c->out_num;
	uint64_t done = 0;
	char buf[256];
	size_t n;

	while ((n = iov_to_buf(c->iov, c->out_num, done, buf, sizeof(buf))) > 0) {
		n = buf_to_iov(in, c->in_num, done, buf, n);
		done += n;
		if (n < sizeof(buf))
			break;
	}
	return (uint32_t)done;
}

static unsigned echo_room(struct queue *q)
{
	return ((struct echo_device *)q->device_data)->nfree;
}

static unsigned echo_handle(struct queue *q, unsigned max)
{
	struct echo_device *dev = q->device_data;
	struct iovec iov[ECHO_MAX_PARTS];
	struct virtq_chain chain = {.iov = iov, .max = ECHO_MAX_PARTS};
	unsigned taken = 0;

	while (taken < max && virtq_pop(dev->vq, &chain) == 1) {
		struct slist_node *n = slist_pop_front(&dev->free);
		struct echo_slot *slot = container_of(n, struct echo_slot, node);

		dev->nfree--;
		taken++;
		dev->taken++;
		dev->bad += chain.bad;
		slot->token = chain.token;
		slot->written_bytes = chain.bad ? 0 : echo(&chain);
		if (dev->hold) {
			slist_push_back(&dev->held, &slot->node);
			dev->nheld++;
		} else {
			finish(dev, slot);
		}
	}
	if (dev->nheld && dev->held_some)
		dev->held_some(dev);
	return taken;
}

static const struct queue_device_ops echo_ops = {
	.room = echo_room,
	.handle = echo_handle,
};

void echo_init(struct echo_device *dev, struct virtq *vq, unsigned nslots)
{
	ASSERT(nslots >= 1 && nslots <= ECHO_MAX_SLOTS);
	dev->vq = vq;
	dev->hold = false;
	dev->held_some = NULL;
	dev->nfree = nslots;
	dev->nheld = 0;
	dev->taken = dev->bad = 0;
	slist_init(&dev->free);
	slist_init(&dev->held);
	for (unsigned i = 0; i < nslots; i++)
		slist_push_back(&dev->free, &dev->slots[i].node);
	vq->queue.device = &echo_ops;
	vq->queue.device_data = dev;
}

unsigned echo_complete(struct echo_device *dev, unsigned n)
{
	unsigned done = 0;

	while (done < n && dev->nheld) {
		struct slist_node *node = slist_pop_front(&dev->held);

		dev->nheld--;
		done++;
		finish(dev, container_of(node, struct echo_slot, node));
	}
	return done;
}
