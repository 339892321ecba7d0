/* `sandbox guard COMMAND...`: runs a helper (the uplink) for as long as the gate lives, whatever ends the gate: its
 * standard input is a pipe whose other end the gate alone has. Ends as the helper ends. */
#ifndef NAMEGATE_SANDBOX_GUARD_H
#define NAMEGATE_SANDBOX_GUARD_H

#include <dirent.h>
#include <sys/signalfd.h>

#include "sandbox.h"

static int run_guard(char **command)
{
	sigset_t watched, before;
	int status;
	sigfillset(&watched);
	sigprocmask(SIG_SETMASK, &watched, &before);
	int children = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
	pid_t child = children < 0 ? -1 : fork();
	if (child < 0)
		return 1;
	if (child == 0) {
		int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		setpgid(0, 0);
		sigprocmask(SIG_SETMASK, &before, NULL);
		if (nothing < 0 || dup2(nothing, 0) < 0)
			_exit(126);
		execvp(command[0], command);
		_exit(errno == ENOENT ? 127 : 126);
	}
	struct pollfd ready[2] = { { 0, POLLIN, 0 }, { children, POLLIN, 0 } };
	for (;;) {
		struct signalfd_siginfo seen;
		if (waitpid(child, &status, WNOHANG) == child)
			return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
		if (poll(ready, 2, -1) < 0 && errno != EINTR)
			break;
		while (read(children, &seen, sizeof(seen)) == sizeof(seen))
			;
		if (ready[0].revents) {
			kill(child, SIGTERM);
			if (usleep(50000), waitpid(child, &status, WNOHANG) != child)
				kill(child, SIGKILL);
			return 0;
		}
	}
	kill(child, SIGKILL);
	return 1;
}

/* `sandbox restore INTERFACES FILE=VALUE...`: waits for the end of its input, which is the end of the gate, and writes the
 * values, unless interfaces whose names begin so are still there but for those of the gate: OWN. */
static bool are_there(const char *begin, const char *own)
{
	DIR *folder = opendir("/sys/class/net");
	bool found = false;
	for (struct dirent *each; folder && !found && (each = readdir(folder));)
		found = strncmp(each->d_name, begin, strlen(begin)) == 0 && strcmp(each->d_name, own) != 0;
	if (folder)
		closedir(folder);
	return found;
}

/* settings: BEGIN OWN FILE=VALUE... */
static int run_restore(int count, char **settings)
{
	char octet;
	sigset_t all;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	ssize_t got;
	do
		got = read(0, &octet, 1);
	while (got > 0 || (got < 0 && errno == EINTR));
	if (count < 2 || are_there(settings[0], settings[1]))
		return 0;
	for (int i = 2; i < count; i++) {
		char *value = strchr(settings[i], '=');
		if (!value)
			continue;
		*value = 0;
		write_file(settings[i], value + 1);
	}
	return 0;
}

#endif
