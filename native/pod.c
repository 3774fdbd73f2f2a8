/* The agent of a Pod: an init container puts this program where the sandbox finds it, and there it carries out calls. */
#include "launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

int run_call(void) {
  find_home();
  serve_call();
  return 0;
}

/* The name appears once the file is whole, as an init container that is run again needs it. */
int run_install(const char *folder) {
  struct stat found;
  int own = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  if (own < 0 || fstat(own, &found) < 0) fail("open the launcher", errno);
  if (chdir(folder) < 0) fail("the folder to install into", errno);
  unlink("launcher.new");
  int copy = open("launcher.new", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
  if (copy < 0) fail("create the launcher's copy", errno);
  for (off_t at = 0; at < found.st_size;) {
    ssize_t sent = sendfile(copy, own, &at, (size_t)(found.st_size - at));
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) fail("copy the launcher", sent < 0 ? errno : EIO);
  }
  if (fchmod(copy, 0555) < 0 || rename("launcher.new", "launcher") < 0) fail("place the launcher's copy", errno);
  return 0;
}
