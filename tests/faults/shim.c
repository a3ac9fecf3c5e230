// Stands between a program and the system (LD_PRELOAD), for files below one folder: makes one of its calls fail, come short, be
// interrupted or be the last, or writes down what was done, so that a power loss can be replayed (faults.py).
//
//   FAULT_ROOT=DIR        only calls about files below it count
//   FAULT_PROGRAM=NAME    only those of this program
//   FAULT_AT=K            the K-th call, from 1
//   FAULT_KIND=WHAT       fail:ERRNO, short (half of a write), kill (SIGKILL instead of the call), kill-half (after half a
//   write) FAULT_LOG=FILE        a line for every call: program, number, call, path, second path or size, with tabs in between
//   FAULT_STORE=DIR       what a file held when it was synced, in a file of the line's number
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))real(#name))

static void* real(const char* name) { return dlsym(RTLD_NEXT, name); }

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long count;

static const char* setting(const char* name) {
  const char* value = getenv(name);
  return value != NULL && value[0] != '\0' ? value : NULL;
}

static int is_watched(const char* path) {
  const char* const root = setting("FAULT_ROOT");
  const char* const program = setting("FAULT_PROGRAM");
  if (root == NULL || path == NULL || strncmp(path, root, strlen(root)) != 0) return 0;
  return program == NULL || strcmp(program, program_invocation_short_name) == 0;
}

// The name of an open file; empty if it is none of ours.
static const char* path_of(int file, char path[PATH_MAX]) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  const ssize_t size = readlink(link, path, PATH_MAX - 1);
  path[size > 0 ? size : 0] = '\0';
  return path;
}

static void keep_content(long number, const char* path) {
  const char* const store = setting("FAULT_STORE");
  struct stat status;
  if (store == NULL || stat(path, &status) != 0 || !S_ISREG(status.st_mode)) return;
  char to[PATH_MAX], bytes[1 << 16];
  snprintf(to, sizeof to, "%s/%d-%ld", store, (int)getpid(), number);
  const int in = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
  const int out = (int)syscall(SYS_openat, AT_FDCWD, to, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  for (ssize_t size; (size = syscall(SYS_read, in, bytes, sizeof bytes)) > 0;) syscall(SYS_write, out, bytes, (size_t)size);
  syscall(SYS_close, in);
  syscall(SYS_close, out);
}

static void put_line(long number, const char* call, const char* path, const char* more) {
  const char* const log = setting("FAULT_LOG");
  if (log == NULL) return;
  char line[3 * PATH_MAX];
  const int size = snprintf(line, sizeof line, "%s\t%d-%ld\t%s\t%s\t%s\n", program_invocation_short_name, (int)getpid(), number,
                            call, path, more);
  const int file = (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  syscall(SYS_write, file, line, (size_t)size);
  syscall(SYS_close, file);
}

// What to do about a call: its number, and 0 (go on), an errno (fail with it), or one of these.
enum { kShort = -1, kKillHalf = -2 };
struct Decision {
  long number;
  int what;
};

static struct Decision decide(void) {
  const char *const at = setting("FAULT_AT"), *const kind = setting("FAULT_KIND");
  pthread_mutex_lock(&lock);
  struct Decision decision = {++count, 0};
  pthread_mutex_unlock(&lock);
  if (at == NULL || kind == NULL || decision.number != atol(at)) return decision;
  if (strcmp(kind, "kill") == 0) raise(SIGKILL);
  if (strcmp(kind, "short") == 0) decision.what = kShort;
  if (strcmp(kind, "kill-half") == 0) decision.what = kKillHalf;
  if (strncmp(kind, "fail:", 5) == 0) decision.what = atoi(kind + 5);
  return decision;
}

#define PASS_OR_FAIL(watched, call, path, more, result)              \
  if (!(watched)) return result;                                     \
  const struct Decision decision = decide();                         \
  if (decision.what > 0) {                                           \
    put_line(decision.number, "failed", path, call);                 \
    errno = decision.what;                                           \
    return -1;                                                       \
  }                                                                  \
  const int done = (result);                                         \
  const int error = errno;                                           \
  put_line(decision.number, done < 0 ? "failed" : call, path, more); \
  errno = error;                                                     \
  return done;

static int opened(int folder, const char* path, int flags, mode_t mode) {
  int (*const call)(int, const char*, int, ...) = (int (*)(int, const char*, int, ...))real("openat");
  char above[PATH_MAX], whole[2 * PATH_MAX];
  if (path[0] == '/' || folder == AT_FDCWD) {
    snprintf(whole, sizeof whole, "%s", path);
  } else {
    snprintf(whole, sizeof whole, "%s/%s", path_of(folder, above), path);
  }
  const int writes = (flags & O_ACCMODE) != O_RDONLY;
  PASS_OR_FAIL(is_watched(whole),
               (flags & O_TRUNC) && writes ? "creat"
               : flags & O_CREAT           ? "create"
                                           : "open",
               whole, "", call(folder, path, flags, mode))
}

#define OPEN(name)                              \
  int name(const char* path, int flags, ...) {  \
    va_list more;                               \
    va_start(more, flags);                      \
    const mode_t mode = va_arg(more, mode_t);   \
    va_end(more);                               \
    return opened(AT_FDCWD, path, flags, mode); \
  }
#define OPENAT(name)                                       \
  int name(int folder, const char* path, int flags, ...) { \
    va_list more;                                          \
    va_start(more, flags);                                 \
    const mode_t mode = va_arg(more, mode_t);              \
    va_end(more);                                          \
    return opened(folder, path, flags, mode);              \
  }
OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)

int mkdir(const char* path, mode_t mode) { PASS_OR_FAIL(is_watched(path), "mkdir", path, "", REAL(mkdir)(path, mode)) }
int rename(const char* from, const char* to) { PASS_OR_FAIL(is_watched(from), "rename", from, to, REAL(rename)(from, to)) }
int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) {
  PASS_OR_FAIL(is_watched(from), "exchange", from, to, REAL(renameat2)(from_folder, from, to_folder, to, flags))
}
int unlink(const char* path) { PASS_OR_FAIL(is_watched(path), "remove", path, "", REAL(unlink)(path)) }
int rmdir(const char* path) { PASS_OR_FAIL(is_watched(path), "remove", path, "", REAL(rmdir)(path)) }
int remove(const char* path) { PASS_OR_FAIL(is_watched(path), "remove", path, "", REAL(remove)(path)) }
int unlinkat(int folder, const char* path, int flags) {
  char above[PATH_MAX], whole[2 * PATH_MAX];
  const int is_whole = path[0] == '/' || folder == AT_FDCWD;
  snprintf(whole, sizeof whole, "%s%s%s", is_whole ? "" : path_of(folder, above), is_whole ? "" : "/", path);
  PASS_OR_FAIL(is_watched(whole), "remove", whole, "", REAL(unlinkat)(folder, path, flags))
}
int truncate(const char* path, off_t size) {
  char text[32];
  snprintf(text, sizeof text, "%ld", (long)size);
  PASS_OR_FAIL(is_watched(path), "size", path, text, REAL(truncate)(path, size))
}
int truncate64(const char* path, off_t size) { return truncate(path, size); }

int ftruncate(int file, off_t size) {
  char path[PATH_MAX], text[32];
  snprintf(text, sizeof text, "%ld", (long)size);
  PASS_OR_FAIL(is_watched(path_of(file, path)), "size", path, text, REAL(ftruncate)(file, size))
}
int ftruncate64(int file, off_t size) { return ftruncate(file, size); }

static int synced(int file, const char* path) {
  const int done = REAL(fsync)(file);
  if (done == 0) keep_content(count, path);
  return done;
}
int fsync(int file) {
  char path[PATH_MAX];
  PASS_OR_FAIL(is_watched(path_of(file, path)), "sync", path, "", synced(file, path))
}

// As if every file and folder were synced on its own.
static int sync_one(const char* path, const struct stat* status, int type, struct FTW* place) {
  (void)status, (void)type, (void)place;
  const long number = ++count;
  keep_content(number, path);
  put_line(number, "sync", path, "");
  return 0;
}
static int system_synced(int file) {
  const int done = REAL(syncfs)(file);
  if (done == 0 && setting("FAULT_STORE") != NULL) nftw(setting("FAULT_ROOT"), sync_one, 16, FTW_PHYS | FTW_DEPTH);
  return done;
}
int syncfs(int file) {
  char path[PATH_MAX];
  PASS_OR_FAIL(is_watched(path_of(file, path)), "syncfs", path, "", system_synced(file))
}
int close(int file) {
  char path[PATH_MAX];
  if (!is_watched(path_of(file, path))) return REAL(close)(file);
  const struct Decision decision = decide();
  const int done = REAL(close)(file);
  put_line(decision.number, decision.what > 0 ? "failed" : "close", path, "close");
  if (decision.what <= 0) return done;
  errno = decision.what;
  return -1;
}

static ssize_t written(int file, const void* bytes, size_t size, off_t at, int has_place) {
  char path[PATH_MAX], text[32];
  ssize_t (*const call)(int, const void*, size_t) = (ssize_t(*)(int, const void*, size_t))real("write");
  ssize_t (*const call_at)(int, const void*, size_t, off_t) = (ssize_t(*)(int, const void*, size_t, off_t))real("pwrite");
  struct Decision decision = {0, 0};
  const int watched = is_watched(path_of(file, path));
  if (watched) decision = decide();
  if (decision.what > 0) {
    put_line(decision.number, "failed", path, "write");
    errno = decision.what;
    return -1;
  }
  if (decision.what < 0) size = (size + 1) / 2;
  const ssize_t done = has_place ? call_at(file, bytes, size, at) : call(file, bytes, size);
  if (decision.what == kKillHalf) raise(SIGKILL);
  if (!watched) return done;
  const int error = errno;
  struct stat status = {.st_size = 0};
  fstat(file, &status);
  snprintf(text, sizeof text, "%ld", (long)status.st_size);
  put_line(decision.number, "write", path, text);
  errno = error;
  return done;
}
ssize_t write(int file, const void* bytes, size_t size) { return written(file, bytes, size, 0, 0); }
ssize_t pwrite(int file, const void* bytes, size_t size, off_t at) { return written(file, bytes, size, at, 1); }
ssize_t pwrite64(int file, const void* bytes, size_t size, off_t at) { return written(file, bytes, size, at, 1); }

void* mmap(void* address, size_t size, int protection, int flags, int file, off_t offset) {
  char path[PATH_MAX];
  if (file >= 0 && is_watched(path_of(file, path))) {
    const struct Decision decision = decide();
    put_line(decision.number, decision.what > 0 ? "failed" : "mmap", path, "mmap");
    if (decision.what > 0) {
      errno = decision.what;
      return MAP_FAILED;
    }
  }
  return (void*)syscall(SYS_mmap, address, size, protection, flags, file, offset);
}
void* mmap64(void* address, size_t size, int protection, int flags, int file, off_t offset) {
  return mmap(address, size, protection, flags, file, offset);
}
