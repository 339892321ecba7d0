/* This file reads what the container runtime gives to the plugin: the network configuration on stdin, the variables CNI_*, and the
 * pod in CNI_ARGS. */
#ifndef NAMEGATE_CNI_NETWORK_H
#define NAMEGATE_CNI_NETWORK_H

#include <arpa/inet.h>
#include <sys/un.h>

#include "cni.h"
#include "json.h"

#define DEFAULT_SOCKET "/run/namegate/admin.sock"
#define NAME_MAX_OCTETS 253

static const char *const versions[] = { "0.3.0", "0.3.1", "0.4.0", "1.0.0", NEWEST_VERSION };
#define VERSIONS (sizeof(versions) / sizeof(*versions))

/* The network configuration. */
struct network {
	struct json root, previous;
	char socket[sizeof(((struct sockaddr_un *)0)->sun_path)];
	/* True if ADD closes the interface while the daemon is away, false if it refuses the pod. */
	bool closes;
	int seconds;
};

/* The pod, from CNI_ARGS. Old runtimes give no UID: then it is empty. */
struct pod {
	char namespace[NAME_MAX_OCTETS + 1], name[NAME_MAX_OCTETS + 1], uid[NAME_MAX_OCTETS + 1];
};

/* Reads stdin to its end. Returns the number of octets. */
static size_t read_input(char *into)
{
	size_t used = 0;
	for (;;) {
		if (!wait_for(STDIN_FILENO, POLLIN))
			fail(CODE_IO, "the network configuration cannot be read", "stdin: %s", strerror(errno));
		ssize_t got = read(STDIN_FILENO, into + used, INPUT_MAX + 1 - used);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			fail(CODE_IO, "the network configuration cannot be read", "stdin: %s", strerror(errno));
		if (got == 0)
			return used;
		used += (size_t)got;
		if (used > INPUT_MAX)
			fail(CODE_DECODE, "the network configuration is too long", "found more than 1 MiB on stdin, expected at most 1 MiB");
	}
}

/* Reads stdin as one JSON object and its version. With `may_be_empty`, an empty stdin gives no value. */
static struct json read_root(bool may_be_empty)
{
	static char input[INPUT_MAX + 1];
	size_t size = read_input(input);
	struct json_reader reader = { input, input + size, "a value", 0 };
	if (may_be_empty && size == 0)
		return (struct json){ NULL, NULL };
	struct json root = json_check(&reader);
	if (!root.at)
		fail(CODE_DECODE, "the network configuration is not JSON", "stdin, octet %zu: expected %s", (size_t)(reader.at - input), reader.expected);
	if (!json_is(root, '{'))
		fail(CODE_DECODE, "the network configuration is not an object", "stdin: expected an object of JSON");
	return root;
}

/* Takes the version in which answers are written. */
static void take_version(struct json root)
{
	char version[sizeof(answer_version)];
	bool is_text = json_string(json_member(root, "cniVersion"), version, sizeof(version));
	for (size_t i = 0; is_text && i < VERSIONS; i++)
		if (strcmp(version, versions[i]) == 0) {
			strcpy(answer_version, version);
			return;
		}
	fail(CODE_VERSION, "the version of the network configuration is not supported",
	     "cniVersion: found '%s', expected 0.3.0, 0.3.1, 0.4.0, 1.0.0 or 1.1.0: set one of these in the network configuration", version);
}

/* A whole number from 1 to `most`, or 0. */
static int small_number(struct json value, int most)
{
	int number = 0;
	for (const char *at = value.at; at && at < value.end; at++) {
		if (*at < '0' || *at > '9')
			return 0;
		number = number * 10 + (*at - '0');
		if (number > most)
			return 0;
	}
	return number;
}

/* Reads the plugin's own keys. */
static void read_keys(struct network *network)
{
	char choice[16];
	struct json socket = json_member(network->root, "socket"), on_failure = json_member(network->root, "on-failure");
	struct json seconds = json_member(network->root, "timeout-seconds");
	strcpy(network->socket, DEFAULT_SOCKET);
	if (socket.at && (!json_string(socket, network->socket, sizeof(network->socket)) || *network->socket != '/'))
		fail(CODE_CONFIGURATION, "the network configuration is not valid",
		     "socket: expected the absolute path of the daemon's admin socket, at most %zu octets", sizeof(network->socket) - 1);
	if (on_failure.at) {
		bool is_text = json_string(on_failure, choice, sizeof(choice));
		network->closes = is_text && strcmp(choice, "close") == 0;
		if (!network->closes && (!is_text || strcmp(choice, "refuse") != 0))
			fail(CODE_CONFIGURATION, "the network configuration is not valid", "on-failure: expected \"refuse\" or \"close\"");
	}
	network->seconds = seconds.at ? small_number(seconds, SECONDS_MAX) : SECONDS_DEFAULT;
	if (network->seconds == 0)
		fail(CODE_CONFIGURATION, "the network configuration is not valid", "timeout-seconds: expected a whole number from 1 to %d", SECONDS_MAX);
}

static void read_network(struct network *network)
{
	int64_t begin = deadline - SECONDS_DEFAULT * 1000;
	memset(network, 0, sizeof(*network));
	network->root = read_root(false);
	take_version(network->root);
	network->previous = json_member(network->root, "prevResult");
	read_keys(network);
	deadline = begin + network->seconds * 1000;
}

/* Finds the value of a key in CNI_ARGS (KEY=VALUE;KEY=VALUE). A name has only letters, digits, dots, hyphens and underscores. */
static void read_argument(const char *key, bool is_needed, char *into)
{
	const char *at = getenv("CNI_ARGS");
	size_t size = 0, length = strlen(key);
	while (at && (strncmp(at, key, length) != 0 || at[length] != '='))
		at = strchr(at, ';') ? strchr(at, ';') + 1 : NULL;
	if (at)
		size = strcspn(at + length + 1, ";");
	*into = 0;
	if (size == 0 && !is_needed)
		return;
	if (size == 0)
		fail(CODE_ENVIRONMENT, "CNI_ARGS does not name the pod", "%s is missing: expected it from a container runtime of Kubernetes", key);
	const char *value = at + length + 1;
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
	if (size > NAME_MAX_OCTETS || strspn(value, allowed) != size)
		fail(CODE_ENVIRONMENT, "CNI_ARGS is not valid", "%s: expected at most %d letters, digits, dots, hyphens or underscores", key, NAME_MAX_OCTETS);
	memcpy(into, value, size);
	into[size] = 0;
}

static void read_pod(struct pod *pod)
{
	read_argument("K8S_POD_NAMESPACE", true, pod->namespace);
	read_argument("K8S_POD_NAME", true, pod->name);
	read_argument("K8S_POD_UID", false, pod->uid);
}

/* Adds one address of prevResult.ips, without the length of its prefix. */
static void add_address(struct text *list, struct json entry)
{
	char address[64];
	struct in6_addr octets;
	bool is_text = json_string(json_member(entry, "address"), address, sizeof(address));
	address[strcspn(address, "/")] = 0;
	if (!is_text || (inet_pton(AF_INET, address, &octets) != 1 && inet_pton(AF_INET6, address, &octets) != 1))
		fail(CODE_CONFIGURATION, "prevResult is not valid", "prevResult.ips: found address '%s', expected an IPv4 or IPv6 address", address);
	if (list->used > 0)
		add_octet(list, ',');
	add_string(list, address);
}

/* Adds the addresses of prevResult to a list, as strings of JSON. */
static void add_addresses(struct text *list, struct json previous)
{
	struct json entry;
	int count = 0;
	if (!json_is(previous, '{'))
		fail(CODE_CONFIGURATION, "the network configuration has no prevResult",
		     "namegate-cni works behind the plugin that makes the interface: put it last in 'plugins' of a .conflist, or run: namegate cni install");
	struct json_reader reader = { NULL, NULL, NULL, 0 };
	struct json addresses = json_member(previous, "ips");
	if (json_is(addresses, '['))
		reader = json_parts(addresses);
	for (; (entry = json_next(&reader)).at; count++) {
		if (count == ADDRESSES_MAX)
			fail(CODE_CONFIGURATION, "prevResult has too many addresses", "prevResult.ips: expected at most %d", ADDRESSES_MAX);
		add_address(list, entry);
	}
	if (count == 0)
		fail(CODE_CONFIGURATION, "prevResult has no address", "prevResult.ips: expected the addresses of the pod from the plugins before");
}

#endif
