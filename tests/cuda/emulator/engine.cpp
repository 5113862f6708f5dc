#include "engine.h"

#include <signal.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <deque>
#include <map>
#include <stdexcept>

namespace emulator {
namespace {

constexpr size_t kPage = 4096, kStack = 128 << 10, kThreads = 1024;
constexpr size_t kStaticShared = 64 << 10, kDynamicShared = 256 << 10;
constexpr size_t kStaticLimit = 48 << 10, kSharedLimit = 227 << 10;

// ---- switching between stacks ----
extern "C" void emulator_switch(void** save, void* load);
#if defined(__x86_64__)
asm(R"(
.text
.type emulator_switch, @function
emulator_switch:
  pushq %rbp; pushq %rbx; pushq %r12; pushq %r13; pushq %r14; pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15; popq %r14; popq %r13; popq %r12; popq %rbx; popq %rbp
  ret
.size emulator_switch, .-emulator_switch
)");
constexpr int kSaved = 6;
#elif defined(__aarch64__)
asm(R"(
.text
.type emulator_switch, %function
emulator_switch:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]; stp x21, x22, [sp, #16]; stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]; stp x27, x28, [sp, #64]; stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]; stp d10, d11, [sp, #112]; stp d12, d13, [sp, #128]; stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]; ldp x21, x22, [sp, #16]; ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]; ldp x27, x28, [sp, #64]; ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]; ldp d10, d11, [sp, #112]; ldp d12, d13, [sp, #128]; ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.size emulator_switch, .-emulator_switch
)");
#else
#error "the emulated device runs on x86-64 and aarch64"
#endif

// Few and small mappings, anywhere: a process that compiles a lot has many of them and little room
// at low addresses. The first and the last page may not be touched.
char* map(size_t size, const char* purpose) {
  void* address = mmap(nullptr, size + 2 * kPage, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  char* first = static_cast<char*>(address) + kPage;
  if (address == MAP_FAILED || mprotect(first, size, PROT_READ | PROT_WRITE) != 0)
    throw std::runtime_error(
        "emulated device: the host gives no " + std::to_string(size >> 10) + " KiB for " + purpose +
        ": " + strerror(errno) + " (free memory, or raise ulimit -v or vm.max_map_count)");
  return first;
}

// Shared memory. PTX has addresses of 32 bits for it, which count from `low`; an untouchable page
// lies in front of each part and behind it.
struct SharedMemory {
  static constexpr size_t kStaticAt = kPage, kDynamicAt = kStaticAt + kStaticShared + kPage;
  static constexpr size_t kEnd = kDynamicAt + kDynamicShared;
  char* low = map(kEnd - kPage, "shared memory") - kPage;
  // By chunks of 16 bytes: whose copy (thread + 1) tensor cores may not see yet, and how many
  // products under way read it.
  std::vector<unsigned> hidden = std::vector<unsigned>(kEnd / 16), read = hidden;
  SharedMemory() { mprotect(low + kDynamicAt - kPage, kPage, PROT_NONE); }
  uint32_t chunk(const void* address) const { return (static_cast<const char*>(address) - low) / 16; }
  bool holds(const void* address) const {
    return static_cast<size_t>(static_cast<const char*>(address) - low) <= kEnd;
  }
};

enum class Wait { kNothing, kBlock, kNamed, kWarp };

struct Copy {
  void* to;
  const void* from;
  size_t size, filled;
};

struct Thread {
  Current current;
  void* stack_pointer = nullptr;
  bool started = false, done = false;
  Wait wait = Wait::kNothing;
  int line = 0, barrier = 0, barrier_threads = 0;
  unsigned mask = 0;
  int exchange_line = 0;
  const Exchange* received = nullptr;
  std::vector<std::vector<Copy>> groups;  // closed groups of cp.async, oldest first
  std::vector<Copy> open;
  std::vector<uint32_t> unpublished;  // chunks that arrived since the last fence.proxy.async
  std::vector<std::vector<uint32_t>> readers;  // chunks that closed groups of wgmma read, oldest first
  std::vector<uint32_t> reading;
};

// Lanes may wait in several groups (masks). What a group exchanged is kept until the group's last
// lane has gone on, which is before four other groups have exchanged something.
struct Warp {
  static constexpr int kRecent = 4;
  unsigned alive, waiting, released;
  Exchange given, recent[kRecent];
  void reset() { alive = waiting = released = 0; }
};

std::string place(const Current& current) {
  char text[160];
  snprintf(text, sizeof text, "thread (%u, %u, %u) of block (%u, %u, %u)", current.thread.x,
           current.thread.y, current.thread.z, current.block.x, current.block.y, current.block.z);
  return text;
}

class Engine {
 public:
  std::string run(const Launch& wanted, bool backwards) {
    launch = &wanted;
    reversed = backwards;
    size_t blocks = size_t(wanted.grid.x) * wanted.grid.y * wanted.grid.z;
    error.clear();
    static_places.clear();
    static_used = 0;
    struct sigaction action {}, old[4];
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE};
    stack_t alternate{}, previous{};
    alternate.ss_sp = signal_stack.data();
    alternate.ss_size = signal_stack.size();
    sigaltstack(&alternate, &previous);
    for (int i = 0; i < 4; ++i) sigaction(signals[i], &action, &old[i]);
    if (sigsetjmp(escape, 1) == 0) {
      for (size_t i = 0; i < blocks; ++i) run_block(reversed ? blocks - 1 - i : i);
    }
    for (int i = 0; i < 4; ++i) sigaction(signals[i], &old[i], nullptr);
    sigaltstack(&previous, nullptr);
    emulator_current = nullptr;
    return error;
  }

  [[noreturn]] void fail(const std::string& message) {
    error = std::string(launch->name) + ": " + message;
    siglongjmp(escape, 1);
  }

  Thread& self() { return threads[running]; }
  Warp& warp() { return warps[self().current.warp]; }

  // Lets copies of the running thread arrive.
  void finish(const std::vector<Copy>& copies) {
    for (const Copy& copy : copies) {
      memcpy(copy.to, copy.from, copy.filled);
      memset(static_cast<char*>(copy.to) + copy.filled, 0, copy.size - copy.filled);
      self().unpublished.push_back(shared.chunk(copy.to));
      shared.hidden[shared.chunk(copy.to)] = running + 1;
    }
  }

  // The running thread's copies can be seen by the tensor cores.
  void publish() {
    for (uint32_t chunk : self().unpublished)
      if (shared.hidden[chunk] == running + 1) shared.hidden[chunk] = 0;
    self().unpublished.clear();
  }

  // Leaves the running thread until somebody makes it ready.
  void block() { emulator_switch(&self().stack_pointer, scheduler); }

  void release(Wait kind) {
    bool any = false;
    for (unsigned i = 0; i < threads.size(); ++i) {
      Thread& thread = threads[i];
      if (thread.done) continue;
      if (thread.wait != kind) return;
      any = true;
    }
    if (!any) return;
    int line = -1;
    for (Thread& thread : threads) {
      if (thread.done) continue;
      if (line >= 0 && thread.line != line)
        fail("threads of a block wait at different __syncthreads(), in lines " +
             std::to_string(line) + " and " + std::to_string(thread.line) + " of the source");
      line = thread.line;
    }
    make_ready([](Thread& thread) { return !thread.done; }, 0, threads.size());
  }

  template <class P>
  void make_ready(P chosen, unsigned first, unsigned last) {
    for (unsigned i = first; i < last; ++i) {
      unsigned index = reversed ? last - 1 - (i - first) : i;
      if (!chosen(threads[index])) continue;
      threads[index].wait = Wait::kNothing;
      ready.push_back(index);
    }
  }

  void release_named(int barrier, int expected) {
    int waiting = 0;
    auto here = [barrier](Thread& t) {
      return !t.done && t.wait == Wait::kNamed && t.barrier == barrier;
    };
    for (Thread& thread : threads) waiting += here(thread);
    if (waiting == expected) make_ready(here, 0, threads.size());
  }

  void release_warp(unsigned number) {
    Warp& warp = warps[number];
    unsigned first = number * 32, last = std::min<unsigned>(first + 32, threads.size());
    for (unsigned i = first; i < last; ++i) {
      Thread& thread = threads[i];
      if (thread.done || thread.wait != Wait::kWarp) continue;
      unsigned needed = thread.mask & warp.alive;
      if ((warp.waiting & needed) != needed) continue;
      warp.waiting &= ~needed;
      for (unsigned lane = 0; first + lane < last; ++lane)
        if (needed >> lane & 1 && threads[first + lane].exchange_line != thread.exchange_line)
          fail("lanes of a warp meet at different instructions, in lines " +
               std::to_string(thread.exchange_line) + " and " +
               std::to_string(threads[first + lane].exchange_line) + " of the source");
      Exchange& result = warp.recent[warp.released++ % Warp::kRecent];
      result.lanes = needed;
      for (unsigned lane = 0; first + lane < last; ++lane) {
        if (!(needed >> lane & 1)) continue;
        memcpy(result.slots[lane], warp.given.slots[lane], Exchange::kBytes);
        threads[first + lane].received = &result;
      }
      make_ready([&](Thread& t) { return t.current.warp == number && (needed >> t.current.lane & 1); },
                 first, last);
      return;
    }
  }

  void finish_thread() {
    Thread& thread = self();
    for (auto& group : thread.groups) finish(group);
    finish(thread.open);
    thread.done = true;
    ++done;
    warp().alive &= ~(1u << thread.current.lane);
    release_warp(thread.current.warp);
    if (done < threads.size()) release(Wait::kBlock);
  }

  std::vector<Thread> threads;
  std::vector<Warp> warps;
  SharedMemory shared;
  size_t static_used = 0;
  std::map<int, size_t> static_places;
  const Launch* launch = nullptr;

 private:
  void run_block(size_t number) {
    const dim3 &grid = launch->grid, &size = launch->block;
    unsigned count = size.x * size.y * size.z;
    threads.assign(count, Thread());
    warps.resize((count + 31) / 32);
    for (Warp& warp : warps) warp.reset();
    for (unsigned i = 0; i < count; ++i) {
      Current& current = threads[i].current;
      current.thread = make_uint3(i % size.x, i / size.x % size.y, i / size.x / size.y);
      current.block = make_uint3(number % grid.x, number / grid.x % grid.y, number / grid.x / grid.y);
      current.block_size = size;
      current.grid_size = grid;
      current.lane = i % 32;
      current.warp = i / 32;
      warps[i / 32].alive |= 1u << (i % 32);
    }
    // NaN where nobody has written.
    std::fill(shared.hidden.begin(), shared.hidden.end(), 0);
    std::fill(shared.read.begin(), shared.read.end(), 0);
    memset(shared.low + SharedMemory::kStaticAt, 0xFF, number ? static_used : kStaticLimit);
    memset(shared.low + SharedMemory::kEnd - launch->shared_bytes, 0xFF, launch->shared_bytes);
    started = done = fibers = 0;
    ready.clear();
    while (done < count) {
      if (!ready.empty()) {
        running = ready.front();
        ready.pop_front();
        resume(self().stack_pointer);
      } else if (started < count) {
        start_fiber();
      } else {
        report_deadlock();
      }
    }
  }

  void resume(void* stack_pointer) {
    emulator_current = &self().current;
    emulator_switch(&scheduler, stack_pointer);
  }

  void start_fiber() {
    void** top = reinterpret_cast<void**>(stacks + ++fibers * kStack);
    running = reversed ? threads.size() - 1 - started : started;
#if defined(__x86_64__)
    *--top = nullptr;  // keeps the stack aligned behind the return address
    *--top = reinterpret_cast<void*>(&Engine::body);
    for (int i = 0; i < kSaved; ++i) *--top = nullptr;
#else
    top -= 20;
    memset(top, 0, 160);
    top[11] = reinterpret_cast<void*>(&Engine::body);
#endif
    resume(top);
  }

  // Runs threads that have not started, one after the other, as long as none has to wait. A
  // fiber that waited starts no others afterwards: those that are ready come first.
  static void body();

  void report_deadlock() {
    std::string text = "threads wait for each other forever:";
    int shown = 0;
    for (Thread& thread : threads) {
      if (thread.done || ++shown > 3) continue;
      const char* kinds[] = {"nothing", "__syncthreads()", "a named barrier", "its warp"};
      text += " " + place(thread.current) + " waits for " + kinds[int(thread.wait)];
      if (thread.wait == Wait::kBlock) text += " in line " + std::to_string(thread.line);
      text += ";";
    }
    fail(text);
  }

  static void on_signal(int number, siginfo_t* info, void*);

  unsigned running = 0, started = 0, done = 0, fibers = 0;
  bool reversed = false;
  void* scheduler = nullptr;
  std::deque<unsigned> ready;
  // The first thread has the lowest stack, so that it is the one to reach the page below.
  char* stacks = map(kThreads * kStack, "the stacks of 1024 threads");
  std::vector<char> signal_stack = std::vector<char>(64 << 10);
  sigjmp_buf escape;
  std::string error;
};

Engine& engine() {
  static Engine one;
  return one;
}

void Engine::body() {
  Engine& e = engine();
  for (;;) {
    ++e.started;
    e.self().started = true;
    e.launch->kernel->run(e.launch->arguments);
    e.finish_thread();
    if (!e.ready.empty() || e.started == e.threads.size()) break;
    e.running = e.reversed ? e.threads.size() - 1 - e.started : e.started;
    emulator_current = &e.self().current;
  }
  void* unused;
  emulator_switch(&unused, e.scheduler);
  __builtin_trap();
}

void Engine::on_signal(int number, siginfo_t* info, void*) {
  Engine& e = engine();
  std::string where = emulator_current ? place(*emulator_current) : "the engine";
  if (number == SIGILL)
    e.fail(where + ": an index is outside of an array, or a vector access is misaligned");
  if (number == SIGFPE) e.fail(where + ": integer division by zero");
  char* address = static_cast<char*>(info->si_addr);
  if (address >= e.stacks - kPage && address < e.stacks) e.fail(where + ": its variables need more than 128 KiB");
  e.fail(where + " touches " + describe_address(address));
}

}  // namespace

std::string run(const Launch& launch, bool reversed) {
  try {
    return engine().run(launch, reversed);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

}  // namespace emulator

using namespace emulator;

extern "C" {
emulator::Current* emulator_current = nullptr;

void emulator_sync_block(int line) {
  Engine& e = engine();
  e.self().wait = Wait::kBlock;
  e.self().line = line;
  e.release(Wait::kBlock);
  e.block();
}

void emulator_sync_named(int barrier, int count) {
  Engine& e = engine();
  e.self().wait = Wait::kNamed;
  e.self().barrier = barrier;
  e.release_named(barrier, count);
  e.block();
}

const Exchange* emulator_exchange(unsigned mask, const void* value, size_t size, int line) {
  Engine& e = engine();
  Thread& thread = e.self();
  Warp& warp = e.warp();
  unsigned bit = 1u << thread.current.lane;
  if (!(mask & bit)) e.fail(place(thread.current) + " is not in the mask of its warp instruction");
  if (value) memcpy(warp.given.slots[thread.current.lane], value, size);
  thread.wait = Wait::kWarp;
  thread.mask = mask;
  thread.exchange_line = line;
  warp.waiting |= bit;
  e.release_warp(thread.current.warp);
  e.block();
  return thread.received;
}

unsigned emulator_active() { return engine().warp().alive; }

// Every thread gets the same place for the same declaration.
void* emulator_static_shared(int declaration, size_t size, size_t alignment) {
  Engine& e = engine();
  auto [found, first] = e.static_places.try_emplace(declaration, 0);
  if (first) {
    found->second = (e.static_used + alignment - 1) / alignment * alignment;
    e.static_used = found->second + size;
    if (e.static_used > kStaticLimit) e.fail("more than 48 KiB of static shared memory");
    size_t limit = e.launch->raised ? kSharedLimit : kStaticLimit;
    if (e.static_used + e.launch->shared_bytes > limit)
      e.fail("static and dynamic shared memory are more than the " + std::to_string(limit >> 10) +
             " KiB that it may use");
  }
  return e.shared.low + SharedMemory::kStaticAt + found->second;
}

// The dynamic part ends at the guard page, as far as its alignment allows.
void* emulator_dynamic_shared(size_t alignment) {
  Engine& e = engine();
  size_t start = kDynamicShared - e.launch->shared_bytes;
  return e.shared.low + SharedMemory::kDynamicAt + start / alignment * alignment;
}

uint32_t emulator_shared_offset(const void* address) {
  Engine& e = engine();
  if (!e.shared.holds(address)) e.fail(place(e.self().current) + " takes other memory for shared memory");
  return static_cast<const char*>(address) - e.shared.low;
}

char* emulator_shared_address(uint32_t offset) {
  Engine& e = engine();
  if (offset > SharedMemory::kEnd)
    e.fail(place(e.self().current) + " touches an address outside of its shared memory");
  return e.shared.low + offset;
}

void emulator_copy_later(void* to, const void* from, size_t size, size_t filled) {
  Engine& e = engine();
  if (reinterpret_cast<size_t>(to) % size || (filled && reinterpret_cast<size_t>(from) % size))
    e.fail(place(e.self().current) + ": cp.async of " + std::to_string(size) + " misaligned bytes");
  if (e.shared.read[e.shared.chunk(to)])
    e.fail(place(e.self().current) + ": cp.async overwrites what a wgmma under way reads");
  e.self().open.push_back({to, from, size, filled});
}

void emulator_close_copies() {
  Thread& thread = engine().self();
  thread.groups.push_back(std::move(thread.open));
  thread.open.clear();
}

void emulator_wait_copies(int left) {
  Engine& e = engine();
  Thread& thread = e.self();
  while (static_cast<int>(thread.groups.size()) > std::max(left, 0)) {
    e.finish(thread.groups.front());
    thread.groups.erase(thread.groups.begin());
  }
  if (left < 0) {
    e.finish(thread.open);
    thread.open.clear();
  }
}

void emulator_publish() { engine().publish(); }

// A product of a group of warps begins to read a chunk, and reads until its group is waited for.
void emulator_group_reads(uint32_t offset) {
  Engine& e = engine();
  if (e.shared.hidden[offset / 16])
    e.fail(place(e.self().current) + ": wgmma reads what was copied without fence.proxy.async");
  ++e.shared.read[offset / 16];
  e.self().reading.push_back(offset / 16);
}

void emulator_close_group() {
  Thread& thread = engine().self();
  thread.readers.push_back(std::move(thread.reading));
  thread.reading.clear();
}

void emulator_wait_group(int left) {
  Engine& e = engine();
  auto& readers = e.self().readers;
  while (static_cast<int>(readers.size()) > left) {
    for (uint32_t chunk : readers.front()) --e.shared.read[chunk];
    readers.erase(readers.begin());
  }
}

void emulator_error(const char* message) {
  Engine& e = engine();
  e.fail(place(e.self().current) + ": " + message);
}
}
