/* In extended attributes, with E2B's names. */
#include "files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>

#define FRONT "user.e2b."
enum { FRONT_BYTES = sizeof FRONT - 1, NAME_BYTES = 255, MOST_READ = METADATA_BYTES / (FRONT_BYTES + 1) };

enum problem keep_metadata(const struct call *call, int file) {
  const char *end = call->request + call->length;
  const char *key = call->request + strlen(call->request) + 1;
  while (key < end) {
    const char *value = key + strlen(key) + 1;
    if (value >= end) break;
    if (*key == '+') {
      char name[NAME_BYTES + 1];
      int length = snprintf(name, sizeof name, FRONT "%s", key + 1);
      if (length >= (int)sizeof name) return BROKEN;
      if (fsetxattr(file, name, value, strlen(value), 0) < 0)
        return errno == EOPNOTSUPP ? NO_METADATA : errno == E2BIG || errno == ERANGE ? NO_SPACE : problem_of(errno);
    }
    key = value + strlen(value) + 1;
  }
  return DONE;
}

static bool is_printable(const char *text, size_t length) {
  for (size_t i = 0; i < length; i++)
    if (text[i] < ' ' || text[i] > '~') return false;
  return true;
}

/* Each with a NUL; NULL if none. Programs inside may set any number. */
static char *names_at(const char *path, ssize_t *size) {
  *size = llistxattr(path, NULL, 0);
  char *names = *size > 0 ? malloc((size_t)*size) : NULL;
  if (names && (*size = llistxattr(path, names, (size_t)*size)) > 0) return names;
  free(names);
  return NULL;
}

size_t read_metadata(int parent, const char *name, char metadata[METADATA_BYTES]) {
  char path[64 + NAME_MAX], value[METADATA_BYTES];
  /* By path, since the type may have changed. Never follows the last name as a link. */
  snprintf(path, sizeof path, "/proc/self/fd/%d/%s", parent, name);
  ssize_t size;
  char *names = names_at(path, &size);
  size_t at = 0, counted = 0, reads = 0;
  for (char *next = names; names && next < names + size && reads < MOST_READ; next += strlen(next) + 1) {
    const char *key = next + FRONT_BYTES;
    if (strncmp(next, FRONT, FRONT_BYTES) != 0) continue;
    size_t length = strlen(key);
    if (length == 0 || !is_printable(key, length)) continue;
    reads++;
    ssize_t got = lgetxattr(path, next, value, sizeof value);
    if (got < 0 || counted + FRONT_BYTES + length + (size_t)got > METADATA_BYTES || !is_printable(value, (size_t)got)) continue;
    /* The bound counts the prefix, whose bytes leave space for both NULs. */
    counted += FRONT_BYTES + length + (size_t)got;
    memcpy(metadata + at, key, length + 1);
    memcpy(metadata + at + length + 1, value, (size_t)got);
    at += length + 1 + (size_t)got;
    metadata[at++] = 0;
  }
  free(names);
  return at;
}

void copy_metadata(int from, int to) {
  char value[METADATA_BYTES];
  ssize_t size = flistxattr(from, NULL, 0);
  char *names = size > 0 ? malloc((size_t)size) : NULL;
  if (!names || (size = flistxattr(from, names, (size_t)size)) < 0) size = 0;
  size_t reads = 0;
  for (char *next = names; next < names + size && reads < MOST_READ; next += strlen(next) + 1) {
    if (strncmp(next, FRONT, FRONT_BYTES) != 0) continue;
    reads++;
    ssize_t got = fgetxattr(from, next, value, sizeof value);
    if (got >= 0 && fsetxattr(to, next, value, (size_t)got, 0) < 0) break; /* the file system has none, or no room */
  }
  free(names);
}
