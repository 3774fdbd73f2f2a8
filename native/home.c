/*
 * E2B's programs expect the home /home/user. In a Pod the agent links it to the home if it can, and otherwise maps the name in working
 * folders.
 */
#include "launcher.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char theirs[] = "/home/user";

/* Read before an order's variables are set. */
static char home[PATH_MAX];

static bool is_folder(const char *path) {
  struct stat found;
  return stat(path, &found) == 0 && S_ISDIR(found.st_mode);
}

/* NULL for other paths. */
static const char *beneath_theirs(const char *path) {
  const size_t length = sizeof theirs - 1;
  return strncmp(path, theirs, length) == 0 && (path[length] == 0 || path[length] == '/') ? path + length : NULL;
}

void find_home(void) {
  struct stat found;
  const char *own = getenv("HOME");
  if (!own || *own != '/' || strlen(own) >= sizeof home || beneath_theirs(own) || !is_folder(own)) return;
  strcpy(home, own);
  if (lstat(theirs, &found) == 0 || errno != ENOENT) return;
  if (symlink(home, theirs) < 0) return; /* not permitted, or another call was first */
}

int enter_folder(const char *path) {
  char inside[2 * PATH_MAX];
  const char *rest = beneath_theirs(path);
  if (chdir(path) == 0) return 0;
  if (errno != ENOENT || !rest || !*home || is_folder(theirs)) return -1;
  snprintf(inside, sizeof inside, "%s%s", home, rest);
  return chdir(inside);
}
