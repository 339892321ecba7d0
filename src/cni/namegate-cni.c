/* namegate-cni is a chained CNI plugin (CNI specification 1.1). It tells the daemon about a pod before the pod starts, and ADD
 * returns only when the daemon has put the pod's policies in force. So the pod's first packet is judged.
 *
 * The plugin runs behind the plugin that makes the interface, and answers with the result of that plugin. It never leaves an
 * interface open: without the daemon ADD refuses the pod, or closes the interface if the network configuration says so. */
#include "cni.h"

#include "ask.h"
#include "closing.h"
#include "json.h"
#include "network.h"
#include "veth.h"

#define PLACE "/v1/kubernetes/place"
#define DISPLACE "/v1/kubernetes/displace"

static void add_member(struct text *object, const char *key, const char *value)
{
	add_octet(object, object->used == 0 ? '{' : ',');
	add_string(object, key);
	add_octet(object, ':');
	add_string(object, value);
}

static void add_pod(struct text *object, const struct pod *pod)
{
	add_member(object, "namespace", pod->namespace);
	add_member(object, "name", pod->name);
	add_member(object, "uid", pod->uid);
}

/* What the daemon says about a refusal. */
static const char *detail_of(const struct answer *answer)
{
	static char detail[1024];
	if (!answer->status)
		return answer->reason;
	if (!json_string(json_member(answer->body, "detail"), detail, sizeof(detail)) && !*detail)
		snprintf(detail, sizeof(detail), "status %d without a reason", answer->status);
	return detail;
}

static bool is_enforced(const struct answer *answer)
{
	return answer->status == 200 && json_is(json_member(answer->body, "enforced"), 't');
}

/* True if the same request can succeed later without a change of the configuration. */
static bool may_succeed_later(const struct answer *answer)
{
	return answer->status == 0 || answer->status == 200 || answer->status >= 500;
}

static _Noreturn void refuse(const struct network *network, const struct answer *answer)
{
	if (!answer->status)
		fail(CODE_LATER, "the namegate daemon did not answer", "%s: %s: check that the daemon runs on this node (namegate status)", network->socket,
		     answer->reason);
	if (may_succeed_later(answer))
		fail(CODE_LATER, "the policies of the pod are not yet in force", "%s: %s: see namegate status on this node", network->socket, detail_of(answer));
	fail(CODE_REFUSED, "the namegate daemon refused the pod", "%s: %s: correct the daemon's configuration on this node", network->socket, detail_of(answer));
}

/* Tells the daemon where the pod is, and waits until its policies are in force. With `may_close`, closes the interface in place of
 * a refusal that ends by itself. */
static void place(const struct network *network, bool may_close)
{
	char octets[REQUEST_MAX], list[ADDRESSES_MAX * 64];
	struct text body = { octets, 0, sizeof(octets), false }, addresses = { list, 0, sizeof(list), false };
	struct pod pod;
	read_pod(&pod);
	add_addresses(&addresses, network->previous);
	int netlink = open_netlink();
	struct link link = find_host_side(netlink);
	add_pod(&body, &pod);
	add_member(&body, "interface", link.name);
	add(&body, ",\"addresses\":[");
	add(&body, list);
	add(&body, "]}");
	struct answer answer = ask(network->socket, PLACE, body.at);
	if (is_enforced(&answer))
		return;
	if (!may_close || !may_succeed_later(&answer))
		refuse(network, &answer);
	int error = close_interface(netlink, link.index);
	if (error < 0)
		fail(CODE_LATER, "the interface cannot be closed", "%s: %s, after the daemon: %s", link.name, strerror(-error), detail_of(&answer));
	fprintf(stderr, "namegate-cni: %s is closed until the daemon puts the policies of %s/%s in force: %s\n", link.name, pod.namespace, pod.name,
		detail_of(&answer));
}

static void add_pod_to_node(void)
{
	struct network network;
	read_network(&network);
	place(&network, network.closes);
	if (!write_all(STDOUT_FILENO, network.previous.at, (size_t)(network.previous.end - network.previous.at)))
		exit(1);
}

static void check_pod(void)
{
	struct network network;
	read_network(&network);
	place(&network, false);
}

static void remove_pod(void)
{
	char octets[REQUEST_MAX];
	struct text body = { octets, 0, sizeof(octets), false };
	struct network network;
	struct pod pod;
	is_removal = true;
	read_network(&network);
	read_pod(&pod);
	add_pod(&body, &pod);
	add_octet(&body, '}');
	struct answer answer = ask(network.socket, DISPLACE, body.at);
	if (answer.status != 200)
		fprintf(stderr, "namegate-cni: the daemon was not told that %s/%s is removed: %s: %s\n", pod.namespace, pod.name, network.socket,
			detail_of(&answer));
}

/* STATUS says if ADD can succeed. With on-failure: close it can without the daemon. */
static void print_status(void)
{
	struct network network;
	read_network(&network);
	struct answer answer = ask(network.socket, "/v1/status", NULL);
	if (answer.status != 200 && network.closes && may_succeed_later(&answer))
		fprintf(stderr, "namegate-cni: new pods are closed until the daemon answers: %s: %s\n", network.socket, detail_of(&answer));
	else if (answer.status != 200)
		fail(CODE_NOT_AVAILABLE, "the namegate daemon does not answer", "%s: %s: check that the daemon runs on this node", network.socket, detail_of(&answer));
}

/* The plugin keeps nothing of a pod, and the daemon follows the cluster, so garbage collection has nothing to remove. */
static void collect_garbage(void)
{
	take_version(read_root(false));
}

static void print_versions(void)
{
	char octets[256];
	struct text answer = { octets, 0, sizeof(octets), false };
	struct json version = json_member(read_root(true), "cniVersion");
	if (!json_string(version, answer_version, sizeof(answer_version)))
		strcpy(answer_version, NEWEST_VERSION);
	add(&answer, "{\"cniVersion\":");
	add_string(&answer, answer_version);
	add(&answer, ",\"supportedVersions\":[");
	for (size_t i = 0; i < VERSIONS; i++) {
		add(&answer, i == 0 ? "" : ",");
		add_string(&answer, versions[i]);
	}
	add(&answer, "]}\n");
	write_all(STDOUT_FILENO, answer.at, answer.used);
}

static const struct {
	const char *name;
	void (*run)(void);
} commands[] = {
	{ "ADD", add_pod_to_node },  { "DEL", remove_pod },	{ "CHECK", check_pod },
	{ "STATUS", print_status }, { "GC", collect_garbage }, { "VERSION", print_versions },
};

int main(void)
{
	const char *command = getenv("CNI_COMMAND");
	deadline = now_ms() + SECONDS_DEFAULT * 1000;
	for (size_t i = 0; command && i < sizeof(commands) / sizeof(*commands); i++)
		if (strcmp(command, commands[i].name) == 0) {
			commands[i].run();
			return 0;
		}
	fail(CODE_ENVIRONMENT, "the command is missing or unknown",
	     "CNI_COMMAND: found '%s', expected ADD, DEL, CHECK, STATUS, GC or VERSION: a container runtime runs this program (docs/cni.md)", command ? command : "");
}
