/* The gate drops packets from a new interface until the programs are attached to it. tc can be attached only to an existing
 * interface. So a workload whose veth is made and brought up at once could send before the programs are there. This hook runs
 * before routing for all interfaces (kernel 6.4 or newer). It drops every packet from an interface whose name is in ng_gate and
 * which has no programs yet. If an interface has programs, they have already judged its packets.
 *
 * The hook sees routed packets and packets for the host itself. It does not see packets between two ports of one bridge. */

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "maps.h"

#define NF_DROP 0
#define NF_ACCEPT 1
#define LOOPBACK_INDEX 1

/* The fields that the gate needs of the kernel's own types. The loader finds their offsets. */
struct net_device {
	int ifindex;
	char name[GATE_NAME_SIZE];
} __attribute__((preserve_access_index));

struct nf_hook_state {
	struct net_device *in;
} __attribute__((preserve_access_index));

struct bpf_nf_ctx {
	const struct nf_hook_state *state;
} __attribute__((preserve_access_index));

static __always_inline int is_bypassed(void)
{
	__u32 zero = 0;
	struct mode_value *value = bpf_map_lookup_elem(&ng_mode, &zero);

	return value && value->mode == MODE_BYPASS;
}

SEC("netfilter")
int ng_gate_in(struct bpf_nf_ctx *ctx)
{
	struct net_device *in = ctx->state->in;

	if (!in || in->ifindex == LOOPBACK_INDEX)
		return NF_ACCEPT;
	struct hook_key hook = { .kind = HOOK_INTERFACE, .id = in->ifindex };
	struct gate_key name = { .bits = 8 * GATE_NAME_SIZE };
	struct endpoint_value *e = bpf_map_lookup_elem(&ng_endpoints, &hook);
	if (e && (e->flags & ENDPOINT_ATTACHED))
		return NF_ACCEPT;
	if (bpf_probe_read_kernel(name.name, sizeof(name.name), in->name) < 0)
		return NF_ACCEPT;
	if (!bpf_map_lookup_elem(&ng_gate, &name) || is_bypassed())
		return NF_ACCEPT;
	__u32 stat = STAT_DROP_NO_ENDPOINT;
	__u64 *counter = bpf_map_lookup_elem(&ng_stats, &stat);
	if (counter)
		*counter += 1;
	return NF_DROP;
}

char LICENSE[] SEC("license") = "GPL";
