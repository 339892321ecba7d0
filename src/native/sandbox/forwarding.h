/* `sandbox forward USERS FILE=FROM>TO...`: switches settings of the kernel on for as long as anybody has need of them. The
 * gates of several sandboxes may want them at the same time, and end in any way and order, so nobody can know alone what to
 * put back: the file USERS holds the settings that were changed and what they were before. Octet 1 of it is locked,
 * shared, by every helper; octet 0 by whoever changes anything. The kernel lets go of both with the process.
 *
 * Writes `on FILE` for each setting that it changed, `ready` when all are so, or `fail FILE ERRNO`; ends with its input,
 * which is the end of the gate. The last one puts back what is still as it was changed to, and takes the file away. */
#ifndef NAMEGATE_SANDBOX_FORWARDING_H
#define NAMEGATE_SANDBOX_FORWARDING_H

#include <sys/stat.h>

#include "sandbox.h"

#define NOTES 65536
#define TURN 0
#define USERS 1

/* Room of a value of a setting. */
#define VALUE 32

/* F_OFD_SETLK of one octet. */
static bool lock_octet(int fd, int command, short type, off_t octet)
{
	struct flock lock = { .l_type = type, .l_whence = SEEK_SET, .l_start = octet, .l_len = 1 };
	int result;
	do
		result = fcntl(fd, command, &lock);
	while (result < 0 && errno == EINTR);
	return result == 0;
}

/* The file with the turn taken; another may have taken it away meanwhile. -1: without it nothing is shared. */
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

/* Notes are lines `FILE=FROM>TO`, as the options are. */
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

/* 0 when the setting is as it is wanted, or was neither on nor off. */
static int switch_on(int users, const char *option)
{
	char note[PATH_MAX + 2 * VALUE], *path, *from, *to;
	int size = snprintf(note, sizeof(note), "%s", option);
	if (size < 0 || size >= (int)sizeof(note) || !read_note(note, &path, &from, &to))
		return 1;
	if (!is_set(path, from))
		return 0;
	/* Noted first: what is noted and was never changed is not put back. */
	if ((users >= 0 && dprintf(users, "%s\n", option) < 0) || !write_file(path, to)) {
		printf("fail %s %d\n", path, errno);
		return 1;
	}
	printf("on %s\n", path);
	return 0;
}

/* From the last note to the first: forwarding goes before what it made necessary. */
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
	for (int i = 1; i < count && !failed; i++)
		failed = switch_on(users, options[i]);
	lock_octet(users, F_OFD_SETLK, F_UNLCK, TURN);
	if (!failed)
		printf("ready\n");
	fflush(stdout);
	wait_for_end();
	if (users < 0) {
		for (int i = 1; i < count && used + strlen(options[i]) + 2 < sizeof(notes); i++)
			used += (size_t)sprintf(notes + used, "%s\n", options[i]);
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
