/* This file reads the options of the launcher from the gate: one line with a number of octets, then as many octets. Each word in
 * them ends with a zero octet. The words are `foreground`, `private-tmp`, `privileged` and `read-only`, and pairs of a name and a
 * value. */
#ifndef NAMEGATE_SANDBOX_OPTIONS_H
#define NAMEGATE_SANDBOX_OPTIONS_H

#include "sandbox.h"

#define OPTIONS_MAX (64 << 20)

/* Reads `size` octets. If the gate ends before, this process ends. */
static void receive(char *into, size_t size)
{
	for (size_t used = 0; used < size;) {
		ssize_t got = recv(CONTROL, into + used, size - used, 0);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			_exit(1);
		used += (size_t)got;
	}
}

static void take(const char **list, int *count, const char *value)
{
	if (*count == LIST_MAX)
		fail("options", E2BIG, value);
	list[(*count)++] = value;
}

static bool take_flag(struct options *options, const char *name)
{
	bool *flag = strcmp(name, "foreground") == 0	? &options->foreground
		     : strcmp(name, "private-tmp") == 0 ? &options->private_tmp
		     : strcmp(name, "privileged") == 0	? &options->privileged
		     : strcmp(name, "read-only") == 0	? &options->read_only
							: NULL;
	if (flag)
		*flag = true;
	return flag != NULL;
}

static void take_value(struct options *options, const char *name, const char *value)
{
	if (strcmp(name, "resolv") == 0)
		options->resolv = value;
	else if (strcmp(name, "file") == 0)
		take(options->files, &options->file_count, value);
	else if (strcmp(name, "folder") == 0)
		take(options->folders, &options->folder_count, value);
	else if (strcmp(name, "hide") == 0)
		take(options->hidden, &options->hidden_count, value);
	else if (strcmp(name, "lock") == 0)
		take(options->locked, &options->locked_count, value);
	else if (strcmp(name, "publish") == 0)
		take(options->publish, &options->publish_count, value);
	else
		fail("options", EINVAL, name);
}

/* The octets stay in memory as long as the options. */
static void receive_options(struct options *options)
{
	char line[16] = "";
	size_t size = 0;
	for (size_t i = 0; i + 1 < sizeof(line) && (i == 0 || line[i - 1] != '\n'); i++)
		receive(line + i, 1);
	if (sscanf(line, "%zu\n", &size) != 1 || size == 0 || size > OPTIONS_MAX)
		fail("options", EINVAL, "length");
	char *words = malloc(size), *end = words + size;
	must(words != NULL, "options", "memory");
	receive(words, size);
	if (end[-1] != 0)
		fail("options", EINVAL, "end");
	for (char *word = words; word < end; word += strlen(word) + 1) {
		const char *name = word;
		if (take_flag(options, name))
			continue;
		word += strlen(word) + 1;
		if (word >= end)
			fail("options", EINVAL, name);
		take_value(options, name, word);
	}
	if (!options->resolv)
		fail("options", EINVAL, "incomplete");
}

#endif
