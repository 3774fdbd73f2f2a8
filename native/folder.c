#include "launcher.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int open_component(int parent, const char *name, const struct stat *volume);
static int make_component(int parent, const char *name, const struct stat *volume);
static bool is_empty(int folder);

/*
 * Opens each name in the folder before it, without following links: the walk never leaves the volume, even if a sandbox renames or replaces
 * folders during it. Creates a missing folder with the owner and mode of the volume.
 */
int open_beneath(const char *volume, const char *path) {
  char names[PATH_MAX];
  struct stat root;
  int folder = open(volume, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0 || fstat(folder, &root) < 0) return -1;
  if (snprintf(names, sizeof names, "%s", path) >= (int)sizeof names) {
    errno = ENAMETOOLONG;
    return -1;
  }
  char *rest;
  for (char *name = strtok_r(names, "/", &rest); name; name = strtok_r(NULL, "/", &rest)) {
    if (strcmp(name, ".") == 0) continue;
    if (strcmp(name, "..") == 0) {
      errno = EXDEV;
      return -1;
    }
    int within = open_component(folder, name, &root);
    close(folder);
    if (within < 0) return -1;
    folder = within;
  }
  return folder;
}

static int open_component(int parent, const char *name, const struct stat *volume) {
  /* O_PATH would open a link itself; O_DIRECTORY refuses it. */
  int folder = openat(parent, name, O_PATH | O_NOFOLLOW | O_DIRECTORY | O_CLOEXEC);
  return folder < 0 && errno == ENOENT ? make_component(parent, name, volume) : folder;
}

static int make_component(int parent, const char *name, const struct stat *volume) {
  bool is_ours = mkdirat(parent, name, 0700) == 0;
  if (!is_ours && errno != EEXIST) return -1;
  int folder = openat(parent, name, O_RDONLY | O_NOFOLLOW | O_DIRECTORY | O_CLOEXEC);
  struct stat made;
  if (folder < 0 || fstat(folder, &made) < 0) return -1;
  /* Only an empty folder of our own: another process may have replaced it with a folder that must stay as it is, even one of our uid. */
  if (!is_ours || made.st_uid != geteuid() || !is_empty(folder)) return folder;
  if (geteuid() == 0 && fchown(folder, volume->st_uid, volume->st_gid) < 0) return -1;
  return fchmod(folder, volume->st_mode & 07777) < 0 ? -1 : folder;
}

/* False also if it is not readable. */
static bool is_empty(int folder) {
  int again = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *entries = again < 0 ? NULL : fdopendir(again);
  if (!entries) return false;
  bool empty = true;
  errno = 0;
  for (struct dirent *entry; empty && (entry = readdir(entries));)
    empty = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
  if (errno != 0) empty = false;
  closedir(entries);
  return empty;
}
