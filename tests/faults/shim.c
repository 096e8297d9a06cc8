// SPDX-License-Identifier: Apache-2.0
/* Loaded before a program's libraries (LD_PRELOAD): makes one call of one kind fail.
 *   KVS_FAULT_CALL    the kind: a name of kNames
 *   KVS_FAULT_AT      the call that fails, from 1; 0: none
 *   KVS_FAULT_WITH    an errno; short: only half of the bytes are read or written; kill: SIGKILL
 *   KVS_FAULT_FOLDER  only files below it are counted
 *   KVS_FAULT_COUNT   a file that receives the number of calls of each kind
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum Outcome { kPass, kFail, kShort };

/* Kinds of calls that are counted separately: of files below the folder, and of no file. */
enum Kind {
  kOpen,
  kRead,
  kWrite,
  kSync,
  kRename,
  kUnlink,
  kTruncate,
  kAllocate,
  kMap,
  kClose,
  kStatus,
  kFolder,
  kLock,
  kProcess,
  kThread,
  kLibrary,
  kNew,
  kKinds
};
static const char* const kNames[kKinds] = {"open",     "read",     "write",  "fsync",  "rename", "unlink",
                                           "truncate", "allocate", "mmap",   "close",  "stat",   "mkdir",
                                           "flock",    "process",  "thread", "dlopen", "new"};

static atomic_long calls[kKinds];
static pid_t owner; /* of the two programs from main on; what they start or fork counts nothing */
static int wanted = kKinds;

static int is_owner(void) { return owner != 0 && owner == getpid(); }

static int is_below(const char* path) {
  const char* const folder = getenv("KVS_FAULT_FOLDER");
  return folder != NULL && path != NULL && strncmp(path, folder, strlen(folder)) == 0;
}

static int is_file_below(int descriptor) {
  if (descriptor <= STDERR_FILENO) return 0;
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  const ssize_t length = syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = 0;
  return is_below(path);
}

/* Counts a call; sets errno if the call is to fail. */
static enum Outcome outcome(enum Kind kind) {
  const long call = atomic_fetch_add(&calls[kind], 1) + 1;
  if ((int)kind != wanted) return kPass;
  const char *const at = getenv("KVS_FAULT_AT"), *const with = getenv("KVS_FAULT_WITH");
  if (at == NULL || with == NULL || call != atol(at)) return kPass;
  if (strcmp(with, "kill") == 0) kill(getpid(), SIGKILL);
  if (strcmp(with, "short") == 0) return kShort;
  errno = atoi(with);
  return kFail;
}

/* Calls with a path, with a descriptor, with no file. */
static enum Outcome outcome_of(enum Kind kind, const char* path) {
  return is_owner() && is_below(path) ? outcome(kind) : kPass;
}
static enum Outcome outcome_at(enum Kind kind, int descriptor) {
  return is_owner() && is_file_below(descriptor) ? outcome(kind) : kPass;
}
static enum Outcome outcome_here(enum Kind kind) { return is_owner() ? outcome(kind) : kPass; }

static void* next(const char* name) { return dlsym(RTLD_NEXT, name); }

typedef int Main(int, char**, char**);
static Main* program;
static uintptr_t first_code, last_code; /* of the program itself, without its libraries */

/* The program is the first of all objects. */
static int note_code(struct dl_phdr_info* object, size_t size, void* unused) {
  (void)size, (void)unused;
  for (int n = 0; n < object->dlpi_phnum; ++n)
    if (object->dlpi_phdr[n].p_type == PT_LOAD && (object->dlpi_phdr[n].p_flags & PF_X) != 0) {
      first_code = object->dlpi_addr + object->dlpi_phdr[n].p_vaddr;
      last_code = first_code + object->dlpi_phdr[n].p_memsz;
    }
  return 1;
}

static int run(int count, char** words, char** environment) {
  dl_iterate_phdr(note_code, NULL);
  const char* const call = getenv("KVS_FAULT_CALL");
  for (int kind = 0; call != NULL && kind < kKinds; ++kind)
    if (strcmp(call, kNames[kind]) == 0) wanted = kind;
  if (strncmp(program_invocation_short_name, "kv", 2) == 0) owner = getpid();
  return program(count, words, environment);
}

/* Calls main. */
int __libc_start_main(Main* main, int count, char** words, void (*init)(void), void (*fini)(void), void (*rtld)(void),
                      void* stack) {
  program = main;
  return ((int (*)(Main*, int, char**, void (*)(void), void (*)(void), void (*)(void), void*))next(
      "__libc_start_main"))(run, count, words, init, fini, rtld, stack);
}

__attribute__((destructor)) static void end(void) {
  const char* const file = getenv("KVS_FAULT_COUNT");
  if (file == NULL || owner != getpid()) return;
  char text[1024];
  int length = 0;
  for (int kind = 0; kind < kKinds; ++kind)
    length +=
        snprintf(text + length, sizeof text - (size_t)length, "%s %ld\n", kNames[kind], atomic_load(&calls[kind]));
  const int descriptor = (int)syscall(SYS_openat, AT_FDCWD, file, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (descriptor < 0) return;
  syscall(SYS_write, descriptor, text, (size_t)length);
  syscall(SYS_close, descriptor);
}

static int open_file(int folder, const char* path, int flags, va_list* list) {
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(*list, mode_t) : 0;
  if (outcome_of(kOpen, path) == kFail) return -1;
  return (int)syscall(SYS_openat, folder, path, flags, mode);
}

#define OPEN(NAME, FOLDER, ...) /* ...: what stands before the path */ \
  int NAME(__VA_ARGS__ const char* path, int flags, ...) {             \
    va_list list;                                                      \
    va_start(list, flags);                                             \
    const int descriptor = open_file(FOLDER, path, flags, &list);      \
    va_end(list);                                                      \
    return descriptor;                                                 \
  }
OPEN(open, AT_FDCWD, )
OPEN(open64, AT_FDCWD, )
OPEN(openat, folder, int folder, )
OPEN(openat64, folder, int folder, )

/* libstdc++'s and HDF5's streams also use this call. */
#define FOPEN(NAME)                                                          \
  FILE* NAME(const char* path, const char* mode) {                           \
    if (outcome_of(kOpen, path) == kFail) return NULL;                       \
    return ((FILE * (*)(const char*, const char*)) next(#NAME))(path, mode); \
  }
FOPEN(fopen)
FOPEN(fopen64)

DIR* opendir(const char* path) {
  if (outcome_of(kStatus, path) == kFail) return NULL;
  return ((DIR * (*)(const char*)) next("opendir"))(path);
}

ssize_t read(int descriptor, void* bytes, size_t size) {
  const enum Outcome what = outcome_at(kRead, descriptor);
  if (what == kFail) return -1;
  return syscall(SYS_read, descriptor, bytes, what == kShort && size > 1 ? size / 2 : size);
}

#define PREAD(NAME)                                                                                   \
  ssize_t NAME(int descriptor, void* bytes, size_t size, off_t at) {                                  \
    const enum Outcome what = outcome_at(kRead, descriptor);                                          \
    if (what == kFail) return -1;                                                                     \
    return syscall(SYS_pread64, descriptor, bytes, what == kShort && size > 1 ? size / 2 : size, at); \
  }
PREAD(pread)
PREAD(pread64)

ssize_t write(int descriptor, const void* bytes, size_t size) {
  const enum Outcome what = outcome_at(kWrite, descriptor);
  if (what == kFail) return -1;
  return syscall(SYS_write, descriptor, bytes, what == kShort && size > 1 ? size / 2 : size);
}

ssize_t writev(int descriptor, const struct iovec* parts, int count) {
  const enum Outcome what = outcome_at(kWrite, descriptor);
  if (what == kFail) return -1;
  if (what == kShort && parts[0].iov_len > 1)
    return syscall(SYS_write, descriptor, parts[0].iov_base, parts[0].iov_len / 2);
  return syscall(SYS_writev, descriptor, parts, count);
}

#define PWRITE(NAME)                                                                                   \
  ssize_t NAME(int descriptor, const void* bytes, size_t size, off_t at) {                             \
    const enum Outcome what = outcome_at(kWrite, descriptor);                                          \
    if (what == kFail) return -1;                                                                      \
    return syscall(SYS_pwrite64, descriptor, bytes, what == kShort && size > 1 ? size / 2 : size, at); \
  }
PWRITE(pwrite)
PWRITE(pwrite64)

/* libstdc++ copies files with this call. It does not handle EINTR. */
ssize_t sendfile(int to, int from, off_t* at, size_t size) {
  const enum Outcome what = outcome_at(kWrite, to);
  if (what == kFail && errno != EINTR) return -1;
  return syscall(SYS_sendfile, to, from, at, what == kShort && size > 1 ? size / 2 : size);
}

int fsync(int descriptor) { return outcome_at(kSync, descriptor) == kFail ? -1 : (int)syscall(SYS_fsync, descriptor); }
int fdatasync(int descriptor) {
  return outcome_at(kSync, descriptor) == kFail ? -1 : (int)syscall(SYS_fdatasync, descriptor);
}

int rename(const char* from, const char* to) {
  if (outcome_of(kRename, from) == kFail) return -1;
  return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}
int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) {
  if (outcome_of(kRename, from) == kFail) return -1;
  return (int)syscall(SYS_renameat2, from_folder, from, to_folder, to, flags);
}

int unlink(const char* path) {
  return outcome_of(kUnlink, path) == kFail ? -1 : (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}
int unlinkat(int folder, const char* path, int flags) {
  if (outcome_here(kUnlink) == kFail) return -1;
  return (int)syscall(SYS_unlinkat, folder, path, flags);
}
int remove(const char* path) {
  return outcome_of(kUnlink, path) == kFail ? -1 : ((int (*)(const char*))next("remove"))(path);
}
int rmdir(const char* path) {
  return outcome_of(kUnlink, path) == kFail ? -1 : (int)syscall(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR);
}

int mkdir(const char* path, mode_t mode) {
  return outcome_of(kFolder, path) == kFail ? -1 : (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}

#define TRUNCATE(NAME)                                                                                      \
  int NAME(int descriptor, off_t size) {                                                                    \
    return outcome_at(kTruncate, descriptor) == kFail ? -1 : (int)syscall(SYS_ftruncate, descriptor, size); \
  }
TRUNCATE(ftruncate)
TRUNCATE(ftruncate64)

#define ALLOCATE(NAME)                                            \
  int NAME(int descriptor, off_t from, off_t size) {              \
    if (outcome_at(kAllocate, descriptor) == kFail) return errno; \
    typedef int (*Allocate)(int, off_t, off_t);                   \
    return ((Allocate)next(#NAME))(descriptor, from, size);       \
  }
ALLOCATE(posix_fallocate)
ALLOCATE(posix_fallocate64)

#define MMAP(NAME)                                                                           \
  void* NAME(void* at, size_t size, int protection, int flags, int descriptor, off_t from) { \
    if (descriptor >= 0 && outcome_at(kMap, descriptor) == kFail) return MAP_FAILED;         \
    return (void*)syscall(SYS_mmap, at, size, protection, flags, descriptor, from);          \
  }
MMAP(mmap)
MMAP(mmap64)

/* A descriptor is closed even if its close fails. */
int close(int descriptor) {
  const enum Outcome what = outcome_at(kClose, descriptor);
  const int error = errno, result = (int)syscall(SYS_close, descriptor);
  if (what != kFail) return result;
  errno = error;
  return -1;
}

#define STATUS(NAME, FLAGS)                                             \
  int NAME(const char* path, struct stat* status) {                     \
    if (outcome_of(kStatus, path) == kFail) return -1;                  \
    return (int)syscall(SYS_newfstatat, AT_FDCWD, path, status, FLAGS); \
  }
STATUS(stat, 0)
STATUS(lstat, AT_SYMLINK_NOFOLLOW)
int fstat(int descriptor, struct stat* status) {
  return outcome_at(kStatus, descriptor) == kFail ? -1 : (int)syscall(SYS_fstat, descriptor, status);
}

int flock(int descriptor, int how) {
  return outcome_at(kLock, descriptor) == kFail ? -1 : (int)syscall(SYS_flock, descriptor, how);
}

/* The calls that start another process. */
int pipe2(int ends[2], int flags) {
  return outcome_here(kProcess) == kFail ? -1 : (int)syscall(SYS_pipe2, ends, flags);
}
pid_t fork(void) { return outcome_here(kProcess) == kFail ? -1 : ((pid_t(*)(void))next("fork"))(); }
int memfd_create(const char* name, unsigned flags) {
  return outcome_here(kProcess) == kFail ? -1 : (int)syscall(SYS_memfd_create, name, flags);
}
int posix_spawnp(pid_t* child, const char* file, const posix_spawn_file_actions_t* actions,
                 const posix_spawnattr_t* attributes, char* const words[], char* const environment[]) {
  if (outcome_here(kProcess) == kFail) return errno;
  typedef int (*Spawn)(pid_t*, const char*, const posix_spawn_file_actions_t*, const posix_spawnattr_t*, char* const[],
                       char* const[]);
  return ((Spawn)next("posix_spawnp"))(child, file, actions, attributes, words, environment);
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*), void* argument) {
  if (outcome_here(kThread) == kFail) return errno;
  typedef int (*Create)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  return ((Create)next("pthread_create"))(thread, attributes, run, argument);
}

static int is_of_program(const void* caller) {
  return (uintptr_t)caller >= first_code && (uintptr_t)caller < last_code;
}

void* dlopen(const char* name, int flags) {
  if (is_of_program(__builtin_return_address(0)) && outcome_here(kLibrary) == kFail) return NULL;
  return ((void* (*)(const char*, int))next("dlopen"))(name, flags);
}

/* C++'s operator new when the program itself calls it; to fail, it asks for too much memory. Libraries are left out:
 * some end a program when they get no memory: OpenSSL and oneDNN by a null pointer, and valijson, whose new does not
 * throw. */
static int fails_new(const void* caller) { return is_of_program(caller) && outcome_here(kNew) == kFail; }
void* _Znwm(size_t size) {
  if (fails_new(__builtin_return_address(0))) size = PTRDIFF_MAX;
  return ((void* (*)(size_t))next("_Znwm"))(size);
}
void* _ZnwmSt11align_val_t(size_t size, size_t alignment) {
  if (fails_new(__builtin_return_address(0))) size = PTRDIFF_MAX - alignment;
  return ((void* (*)(size_t, size_t))next("_ZnwmSt11align_val_t"))(size, alignment);
}
void* aligned_alloc(size_t alignment, size_t size) {
  if (fails_new(__builtin_return_address(0))) return NULL;
  return ((void* (*)(size_t, size_t))next("aligned_alloc"))(alignment, size);
}
