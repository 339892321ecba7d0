/* `sandbox forward USERS FILE=FROM>TO...` switches kernel settings on for as long as any sandbox needs them. Several sandboxes
 * can need the settings at the same time, and end in any way and order. So no single gate knows which values to restore. The file
 * USERS lists the settings that were changed and their values before. Every helper holds a shared lock on octet 1 of USERS. A
 * helper that changes a setting locks octet 0. The kernel releases both locks when the process ends.
 *
 * The kernel changes some settings with others: forwarding of each interface with that of the host. An option `-FILE=FROM>TO` names
 * such a setting. The helper does not change it. The first helper only notes it, if it has the value FROM, so that the last one can
 * restore it.
 *
 * The helper writes `on FILE` for each setting that it changed. It then writes `ready` if every setting has the wanted value, or
 * `fail FILE ERRNO`. It ends when its input ends, that is, when the gate ends. The last helper restores each setting that still
 * has the value that a helper wrote, and removes USERS. */
#ifndef NAMEGATE_SANDBOX_FORWARDING_H
#define NAMEGATE_SANDBOX_FORWARDING_H

#include <sys/stat.h>

#include "sandbox.h"

#define NOTES 65536
#define TURN 0
#define USERS 1

/* Room for the value of a setting. */
#define VALUE 32

/* Applies F_OFD_SETLK to one octet. */
static bool lock_octet(int fd, int command, short type, off_t octet)
{
	struct flock lock = { .l_type = type, .l_whence = SEEK_SET, .l_start = octet, .l_len = 1 };
	int result;
	do
		result = fcntl(fd, command, &lock);
	while (result < 0 && errno == EINTR);
	return result == 0;
}

/* Opens USERS and locks octet 0. If another helper removed the file before the lock, it opens the file again. Returns -1 on
 * failure: then this helper shares nothing. */
static int open_users(const char *path)
{
	for (;;) {
		struct stat now;
		int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (fd < 0)
			return -1;
		if (!lock_octet(fd, F_OFD_SETLKW, F_WRLCK, TURN) || fstat(fd, &now) < 0) {
			close(fd);
			return -1;
		}
		if (now.st_nlink > 0)
			return fd;
		close(fd);
	}
}

static bool is_set(const char *path, const char *value)
{
	char text[VALUE] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	if (got <= 0)
		return false;
	text[strcspn(text, "\n")] = 0;
	return strcmp(text, value) == 0;
}

/* A note is a line `FILE=FROM>TO`, like an option. */
static bool read_note(char *note, char **path, char **from, char **to)
{
	*path = note;
	*from = strchr(note, '=');
	*to = *from ? strchr(*from, '>') : NULL;
	if (!*to)
		return false;
	*(*from)++ = 0;
	*(*to)++ = 0;
	return true;
}

/* Returns 0 if the setting now has the wanted value, or if it had neither of the two values. `follows`: the kernel changes it. */
static int switch_on(int users, const char *option, bool follows)
{
	char note[PATH_MAX + 2 * VALUE], *path, *from, *to;
	int size = snprintf(note, sizeof(note), "%s", option);
	if (size < 0 || size >= (int)sizeof(note) || !read_note(note, &path, &from, &to))
		return 1;
	if (!is_set(path, from))
		return 0;
	if (follows)
		return users >= 0 && dprintf(users, "%s\n", option) < 0;
	/* The note is written first. A setting that is noted but was never changed is not restored. */
	if ((users >= 0 && dprintf(users, "%s\n", option) < 0) || !write_file(path, to)) {
		printf("fail %s %d\n", path, errno);
		return 1;
	}
	printf("on %s\n", path);
	return 0;
}

/* Restores from the last note to the first: forwarding is switched off before the settings that it needs. */
static void put_back(char *notes)
{
	char *line, *path, *from, *to;
	while ((line = strrchr(notes, '\n'))) {
		*line = 0;
		char *begin = strrchr(notes, '\n');
		char *note = begin ? begin + 1 : notes;
		if (read_note(note, &path, &from, &to) && is_set(path, to))
			write_file(path, from);
		if (!begin)
			return;
	}
}

static void wait_for_end(void)
{
	char octet;
	ssize_t got;
	do
		got = read(0, &octet, 1);
	while (got > 0 || (got < 0 && errno == EINTR));
}

/* options: USERS FILE=FROM>TO... */
static int run_forward(int count, char **options)
{
	static char notes[NOTES];
	int failed = 0;
	size_t used = 0;
	sigset_t all;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	int users = open_users(options[0]);
	lock_octet(users, F_OFD_SETLK, F_RDLCK, USERS);
	bool first = users < 0 || lseek(users, 0, SEEK_END) == 0;
	for (int i = 1; i < count && !failed; i++) {
		bool follows = options[i][0] == '-';
		if (first || !follows)
			failed = switch_on(users, options[i] + follows, follows);
	}
	lock_octet(users, F_OFD_SETLK, F_UNLCK, TURN);
	if (!failed)
		printf("ready\n");
	fflush(stdout);
	wait_for_end();
	if (users < 0) {
		for (int i = 1; i < count && used + strlen(options[i]) + 2 < sizeof(notes); i++)
			used += (size_t)sprintf(notes + used, "%s\n", options[i] + (options[i][0] == '-'));
		put_back(notes);
		return failed;
	}
	lock_octet(users, F_OFD_SETLKW, F_WRLCK, TURN);
	lock_octet(users, F_OFD_SETLK, F_UNLCK, USERS);
	if (!lock_octet(users, F_OFD_SETLK, F_WRLCK, USERS))
		return failed;
	ssize_t got = pread(users, notes, sizeof(notes) - 1, 0);
	if (got > 0)
		put_back(notes);
	unlink(options[0]);
	return failed;
}

#endif
