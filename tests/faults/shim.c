/* Loaded before a program's libraries (LD_PRELOAD): lets one call of one function fail.
 *   KVS_FAULT_CALL    open, write, fsync, rename, unlink, truncate, mmap, thread or new
 *   KVS_FAULT_AT      the call that fails, from 1; 0: none
 *   KVS_FAULT_WITH    an errno; short: only half of the bytes are written; kill: SIGKILL
 *   KVS_FAULT_FOLDER  only files below it are counted
 *   KVS_FAULT_COUNT   a file that is told how many calls there were
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum Outcome { kPass, kFail, kShort };

static atomic_long calls;
static pid_t owner; /* of the two programs from main on; what they start or fork counts nothing */

static int is_counted(const char* call) {
  const char* const wanted = getenv("KVS_FAULT_CALL");
  return owner == getpid() && wanted != NULL && strcmp(call, wanted) == 0;
}

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

/* Counts a call; errno is set where it fails. */
static enum Outcome outcome(void) {
  const char *const at = getenv("KVS_FAULT_AT"), *const with = getenv("KVS_FAULT_WITH");
  const long call = atomic_fetch_add(&calls, 1) + 1;
  if (at == NULL || with == NULL || call != atol(at)) return kPass;
  if (strcmp(with, "kill") == 0) kill(getpid(), SIGKILL);
  if (strcmp(with, "short") == 0) return kShort;
  errno = atoi(with);
  return kFail;
}

static void* next(const char* name) { return dlsym(RTLD_NEXT, name); }

typedef int Main(int, char**, char**);
static Main* program;
static uintptr_t first_code, last_code; /* of the program itself, without its libraries */

/* The program is the first object of all. */
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
  char text[32];
  const int length = snprintf(text, sizeof text, "%ld", atomic_load(&calls));
  const int descriptor = (int)syscall(SYS_openat, AT_FDCWD, file, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (descriptor < 0) return;
  syscall(SYS_write, descriptor, text, (size_t)length);
  syscall(SYS_close, descriptor);
}

static int open_file(int folder, const char* path, int flags, va_list* list) {
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(*list, mode_t) : 0;
  if (is_counted("open") && is_below(path) && outcome() == kFail) return -1;
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

/* libstdc++'s and HDF5's streams come through here, too. */
#define FOPEN(NAME)                                                              \
  FILE* NAME(const char* path, const char* mode) {                               \
    if (is_counted("open") && is_below(path) && outcome() == kFail) return NULL; \
    return ((FILE * (*)(const char*, const char*)) next(#NAME))(path, mode);     \
  }
FOPEN(fopen)
FOPEN(fopen64)

ssize_t write(int descriptor, const void* bytes, size_t size) {
  if (is_counted("write") && is_file_below(descriptor)) {
    const enum Outcome what = outcome();
    if (what == kFail) return -1;
    if (what == kShort && size > 1) size /= 2;
  }
  return syscall(SYS_write, descriptor, bytes, size);
}

ssize_t writev(int descriptor, const struct iovec* parts, int count) {
  if (is_counted("write") && is_file_below(descriptor)) {
    const enum Outcome what = outcome();
    if (what == kFail) return -1;
    if (what == kShort && parts[0].iov_len > 1)
      return syscall(SYS_write, descriptor, parts[0].iov_base, parts[0].iov_len / 2);
  }
  return syscall(SYS_writev, descriptor, parts, count);
}

#define PWRITE(NAME)                                                       \
  ssize_t NAME(int descriptor, const void* bytes, size_t size, off_t at) { \
    if (is_counted("write") && is_file_below(descriptor)) {                \
      const enum Outcome what = outcome();                                 \
      if (what == kFail) return -1;                                        \
      if (what == kShort && size > 1) size /= 2;                           \
    }                                                                      \
    return syscall(SYS_pwrite64, descriptor, bytes, size, at);             \
  }
PWRITE(pwrite)
PWRITE(pwrite64)

int fsync(int descriptor) {
  if (is_counted("fsync") && is_file_below(descriptor) && outcome() == kFail) return -1;
  return (int)syscall(SYS_fsync, descriptor);
}
int fdatasync(int descriptor) {
  if (is_counted("fsync") && is_file_below(descriptor) && outcome() == kFail) return -1;
  return (int)syscall(SYS_fdatasync, descriptor);
}

int rename(const char* from, const char* to) {
  if (is_counted("rename") && is_below(from) && outcome() == kFail) return -1;
  return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}
int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) {
  if (is_counted("rename") && is_below(from) && outcome() == kFail) return -1;
  return (int)syscall(SYS_renameat2, from_folder, from, to_folder, to, flags);
}

int unlink(const char* path) {
  if (is_counted("unlink") && is_below(path) && outcome() == kFail) return -1;
  return (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}
int unlinkat(int folder, const char* path, int flags) {
  if (is_counted("unlink") && outcome() == kFail) return -1;
  return (int)syscall(SYS_unlinkat, folder, path, flags);
}
int remove(const char* path) {
  if (is_counted("unlink") && is_below(path) && outcome() == kFail) return -1;
  return ((int (*)(const char*))next("remove"))(path);
}

#define TRUNCATE(NAME)                                                                        \
  int NAME(int descriptor, off_t size) {                                                      \
    if (is_counted("truncate") && is_file_below(descriptor) && outcome() == kFail) return -1; \
    return (int)syscall(SYS_ftruncate, descriptor, size);                                     \
  }
TRUNCATE(ftruncate)
TRUNCATE(ftruncate64)

#define MMAP(NAME)                                                                                                   \
  void* NAME(void* at, size_t size, int protection, int flags, int descriptor, off_t from) {                         \
    if (descriptor >= 0 && is_counted("mmap") && is_file_below(descriptor) && outcome() == kFail) return MAP_FAILED; \
    return (void*)syscall(SYS_mmap, at, size, protection, flags, descriptor, from);                                  \
  }
MMAP(mmap)
MMAP(mmap64)

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*), void* argument) {
  if (is_counted("thread") && outcome() == kFail) return errno;
  typedef int (*Create)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  return ((Create)next("pthread_create"))(thread, attributes, run, argument);
}

/* C++'s operator new as the program itself calls it, which asks for too much where it is to fail. Libraries are left
 * out: some end a program when they get nothing, by a null pointer OpenSSL and oneDNN, and valijson, whose new does not
 * throw. */
static int fails_new(const void* caller) {
  return (uintptr_t)caller >= first_code && (uintptr_t)caller < last_code && is_counted("new") && outcome() == kFail;
}
void* _Znwm(size_t size) {
  if (fails_new(__builtin_return_address(0))) size = PTRDIFF_MAX;
  return ((void* (*)(size_t))next("_Znwm"))(size);
}
void* _ZnwmSt11align_val_t(size_t size, size_t alignment) {
  if (fails_new(__builtin_return_address(0))) size = PTRDIFF_MAX - alignment;
  return ((void* (*)(size_t, size_t))next("_ZnwmSt11align_val_t"))(size, alignment);
}
