#include "launcher.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* A burst is queued while the kernel throttles the forwarder by the sandbox's CPU limit. */
enum { WAITING = 1024 };

/* A socket's path has a short limit. */
int listen_outside(const char *folder, const char *name, int flags) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (*name == 0 || strchr(name, '/') || strlen(name) >= sizeof address.sun_path) fail("the socket's name is no name", 0);
  strcpy(address.sun_path, name);
  int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
  if (listener < 0 || chdir(folder) < 0) fail("the socket's folder", errno);
  umask(0177);
  if (bind(listener, (struct sockaddr *)&address, sizeof address) < 0 || listen(listener, WAITING) < 0) fail("listen", errno);
  if (chdir("/") < 0) fail("chdir", errno);
  return listener;
}
