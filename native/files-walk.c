/* Walks that a rename can't redirect. */
#include "files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int by_bytes(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

void free_names(struct names *names) {
  for (size_t i = 0; i < names->count; i++) free(names->items[i]);
  free(names->items);
  *names = (struct names){0};
}

static bool add_name(struct names *names, const char *name) {
  if (names->count == names->room) {
    size_t room = names->room ? names->room * 2 : 64;
    char **items = realloc(names->items, room * sizeof *items);
    if (!items) return false;
    names->items = items;
    names->room = room;
  }
  char *copy = strdup(name);
  if (!copy) return false;
  names->items[names->count++] = copy;
  return true;
}

static void keep_first(struct names *names, size_t most) {
  qsort(names->items, names->count, sizeof *names->items, by_bytes);
  while (most && names->count > most) free(names->items[--names->count]);
}

static DIR *open_names(int folder) {
  int own = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *stream = own < 0 ? NULL : fdopendir(own);
  if (stream || own < 0) return stream;
  int error = errno;
  close(own);
  errno = error;
  return NULL;
}

/* NULL at the end, and on an error. */
static const char *next_name(DIR *stream, enum problem *problem) {
  for (;;) {
    errno = 0;
    const struct dirent *entry = readdir(stream);
    if (!entry) {
      *problem = problem_of(errno);
      return NULL;
    }
    if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) return entry->d_name;
  }
}

static enum problem names_read(DIR *stream, enum problem problem, struct names *names) {
  closedir(stream);
  if (problem) free_names(names);
  return problem;
}

enum problem read_names(int folder, const char *from, size_t most, struct names *names) {
  *names = (struct names){0};
  DIR *stream = open_names(folder);
  if (!stream) return problem_of(errno);
  enum problem problem = DONE;
  bool bounded = false;
  const char *name;
  while (!problem && (name = next_name(stream, &problem))) {
    if (from && strcmp(name, from) < 0) continue;
    if (bounded && strcmp(name, names->items[most - 1]) > 0) continue;
    if (!add_name(names, name)) problem = TOO_MANY;
    if (problem || !most || names->count < 2 * most) continue;
    keep_first(names, most);
    bounded = true;
  }
  if (!problem && names->count) keep_first(names, most);
  return names_read(stream, problem, names);
}

enum problem read_some_names(int folder, size_t most, struct names *names) {
  *names = (struct names){0};
  DIR *stream = open_names(folder);
  if (!stream) return problem_of(errno);
  enum problem problem = DONE;
  const char *name;
  while (!problem && names->count < most && (name = next_name(stream, &problem)))
    if (!add_name(names, name)) problem = TOO_MANY;
  return names_read(stream, problem, names);
}

enum problem begin_trail(struct trail *trail, int folder) {
  *trail = (struct trail){.folder = folder};
  return DONE;
}

enum problem descend(struct trail *trail, const char *name, struct names *names, size_t next) {
  struct stat here;
  if (fstat(trail->folder, &here) < 0) return problem_of(errno);
  if (trail->depth == trail->room) {
    size_t room = trail->room ? trail->room * 2 : 16;
    struct step *steps = realloc(trail->steps, room * sizeof *steps);
    if (!steps) return TOO_MANY;
    trail->steps = steps;
    trail->room = room;
  }
  char *copy = strdup(name);
  if (!copy) return TOO_MANY;
  int below = open_safely(trail->folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, RESOLVE_NO_XDEV);
  if (below < 0) {
    free(copy);
    return errno == EXDEV ? BUSY : problem_of(errno);
  }
  trail->steps[trail->depth++] =
      (struct step){.device = here.st_dev, .inode = here.st_ino, .name = copy, .names = names ? *names : (struct names){0}, .next = next};
  close(trail->folder);
  trail->folder = below;
  return DONE;
}

enum problem ascend(struct trail *trail, struct names *names, size_t *next, char **left) {
  struct stat there;
  int above = open_safely(trail->folder, "..", O_RDONLY | O_DIRECTORY, 0, 0);
  if (above < 0) return problem_of(errno);
  const struct step *step = &trail->steps[trail->depth - 1];
  if (fstat(above, &there) < 0 || there.st_dev != step->device || there.st_ino != step->inode) {
    close(above);
    return CHANGED;
  }
  trail->depth--;
  close(trail->folder);
  trail->folder = above;
  if (names) *names = step->names;
  if (next) *next = step->next;
  *left = step->name;
  return DONE;
}

void end_trail(struct trail *trail) {
  while (trail->depth > 0) {
    struct step *step = &trail->steps[--trail->depth];
    free(step->name);
    free_names(&step->names);
  }
  free(trail->steps);
  if (trail->folder >= 0) close(trail->folder);
}
