/* These programs judge what endpoints send, and follow what endpoints receive, for IPv4 and IPv6. They run as tc (clsact) on an
 * interface, and as cgroup_skb for processes of the host itself. src/datapath/datapath.ts has the verdict order. The tests have a
 * packet model that is its executable form, and one contract suite runs the model and the programs.
 *
 * Rules that datapath.ts leaves to the programs:
 * - Later fragments have no ports. They pass if policy allows the whole protocol, or every protocol, to that identity. This
 *   undoes no deny, because a packet whose first fragment was dropped is never completed.
 * - ICMP is judged as protocol 1 or 58, port 0. An echo reply to a peer's request is a reply.
 * - Protocols other than TCP, UDP, SCTP and ICMP have port 0 and no connections.
 * - A hook without an endpoint drops every packet that is sent through it.
 * - A fenced hook passes DNS to namegate until its endpoint is known. The sender is unknown, so it must not use a source address
 *   of another endpoint.
 * - Drops for a wrong source or a malformed packet also apply to endpoints that are audited or not enforcing, because these drops
 *   protect other endpoints. Mode bypass lifts them.
 * - Inbound packets are never dropped. In mode bypass they are not followed.
 *
 * A process with CAP_NET_RAW in a fenced cgroup can send through a packet socket, which no cgroup program sees. An endpoint with
 * an interface cannot do this. */

#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "conn.h"
#include "intercept.h"
#include "judge.h"
#include "maps.h"
#include "neighbour.h"
#include "packet.h"

#define CGROUP_LEVELS 32

static __always_inline int from_interface(struct __sk_buff *skb, const struct endpoint_value *e, __u32 mode)
{
	struct packet p = {};
	struct judgement j = {};
	struct conn_key k;
	int read = read_frame(skb, e->flags & ENDPOINT_LAYER3, &p);

	if (read == READ_ARP)
		return PASS;
	if (read != READ_OK)
		return refuse(e, &p, &j, STAT_DROP_MALFORMED, REASON_MALFORMED);
	forget_fields(skb, &p);
	if (is_housekeeping(e, &p, &k)) {
		count(STAT_NEIGHBOUR);
		return PASS;
	}
	identify(e, p.family, p.target, &j);
	if (!owns_source(e, &p))
		return refuse(e, &p, &j, STAT_DROP_SOURCE, REASON_SOURCE);
	if (is_listener(&p, p.target, p.target_port, j.class) && reaches_listener(skb, &p)) {
		count(STAT_LISTENER);
		return PASS;
	}
	if (is_intercepted(skb, &p)) {
		count(STAT_INTERCEPTED);
		return PASS;
	}
	if (e->flags & ENDPOINT_FENCED) {
		count(mode == MODE_AUDIT ? STAT_AUDIT : STAT_DROP_NO_ENDPOINT);
		return mode == MODE_AUDIT ? PASS : DROP;
	}
	return admit(e, &p, &j, &k, mode);
}

static __always_inline void note_dns_source(const struct endpoint_value *e, const struct packet *p)
{
	struct dns_source_key key = { .protocol = p->protocol, .family = p->family, .port = p->source_port };

	__builtin_memcpy(key.address, p->source, 16);
	bpf_map_update_elem(&ng_dns_source, &key, &e->id, BPF_ANY);
}

/* Runs in mode bypass too, because namegate must know whose query a packet is. Otherwise DNS would stop. */
static __always_inline int from_cgroup(struct __sk_buff *skb, const struct endpoint_value *e, __u32 mode)
{
	struct packet p = {};
	struct judgement j = {};
	struct conn_key k;

	if (read_network(skb, &p) != READ_OK)
		return mode == MODE_BYPASS ? PASS : refuse(e, &p, &j, STAT_DROP_MALFORMED, REASON_MALFORMED);
	forget_fields(skb, &p);
	if (is_loopback(&p))
		j.identity = j.class = CLASS_HOST;
	else
		identify(e, p.family, p.target, &j);
	if (is_listener(&p, p.target, p.target_port, j.class) && !p.adorned) {
		note_dns_source(e, &p);
		count(STAT_LISTENER);
		return PASS;
	}
	return mode == MODE_BYPASS ? PASS : admit(e, &p, &j, &k, mode);
}

/* Follows what an endpoint receives. A packet that namegate's own listener sends begins no connection. */
static __always_inline void receive(const struct endpoint_value *e, const struct packet *p)
{
	struct judgement j = {};
	struct conn_key k;

	identify(e, p->family, p->source, &j);
	if (is_listener(p, p->source, p->source_port, j.class))
		return;
	conn_key_of(e, p, 0, &k);
	follow(p, &k, 0);
}

static __always_inline struct endpoint_value *endpoint_of_interface(struct __sk_buff *skb)
{
	struct hook_key key = { .kind = HOOK_INTERFACE, .id = skb->ifindex };

	return bpf_map_lookup_elem(&ng_endpoints, &key);
}

/* The deepest cgroup above the socket that belongs to an endpoint. */
static __always_inline struct endpoint_value *endpoint_of_cgroup(struct __sk_buff *skb)
{
	struct hook_key key = { .kind = HOOK_CGROUP };
	struct endpoint_value *found = 0;

	for (int level = 0; level < CGROUP_LEVELS; level++) {
		key.id = bpf_skb_ancestor_cgroup_id(skb, level);
		if (!key.id)
			break;
		struct endpoint_value *e = bpf_map_lookup_elem(&ng_endpoints, &key);
		if (e)
			found = e;
	}
	return found;
}

SEC("tc")
int ng_tc_from(struct __sk_buff *skb)
{
	__u32 mode = current_mode();

	if (mode == MODE_BYPASS) {
		count(STAT_BYPASS);
		return TC_ACT_UNSPEC;
	}
	struct endpoint_value *e = endpoint_of_interface(skb);
	if (!e) {
		count(STAT_DROP_NO_ENDPOINT);
		return TC_ACT_SHOT;
	}
	return from_interface(skb, e, mode) == PASS ? TC_ACT_UNSPEC : TC_ACT_SHOT;
}

SEC("tc")
int ng_tc_to(struct __sk_buff *skb)
{
	struct packet p = {};
	struct conn_key k;

	if (current_mode() == MODE_BYPASS)
		return TC_ACT_UNSPEC;
	struct endpoint_value *e = endpoint_of_interface(skb);
	if (!e || read_frame(skb, e->flags & ENDPOINT_LAYER3, &p) != READ_OK)
		return TC_ACT_UNSPEC;
	forget_fields(skb, &p);
	learn_neighbours(skb, e, &p, &k);
	if (!(e->flags & ENDPOINT_FENCED) && !is_quiet(skb, &p))
		receive(e, &p);
	return TC_ACT_UNSPEC;
}

SEC("cgroup_skb/egress")
int ng_cgroup_from(struct __sk_buff *skb)
{
	__u32 mode = current_mode();
	struct endpoint_value *e = endpoint_of_cgroup(skb);

	if (mode == MODE_BYPASS)
		count(STAT_BYPASS);
	if (e)
		return from_cgroup(skb, e, mode);
	if (mode == MODE_BYPASS)
		return PASS;
	count(STAT_DROP_NO_ENDPOINT);
	return DROP;
}

SEC("cgroup_skb/ingress")
int ng_cgroup_to(struct __sk_buff *skb)
{
	struct packet p = {};

	if (current_mode() == MODE_BYPASS)
		return PASS;
	struct endpoint_value *e = endpoint_of_cgroup(skb);
	if (!e || read_network(skb, &p) != READ_OK)
		return PASS;
	forget_fields(skb, &p);
	receive(e, &p);
	return PASS;
}

char LICENSE[] SEC("license") = "GPL";
