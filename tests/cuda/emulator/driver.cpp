// Memory, streams, launches and failures of the emulated device.
#include "driver.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace emulator {
namespace {
constexpr size_t kPage = 4096, kAlignment = 256;
constexpr unsigned char kFresh = 0xFF, kCanary = 0xA5;

size_t up(size_t value, size_t to) { return (value + to - 1) / to * to; }

// Writes into the bytes between the end of an allocation and its guard page.
std::string damaged() {
  for (auto& [pointer, item] : state().allocations) {
    char* end = item.base + item.mapped - kPage;
    for (char* at = pointer + item.size; at < end; ++at)
      if (static_cast<unsigned char>(*at) != kCanary)
        return "writes " + std::to_string(at - (pointer + item.size) + 1) +
               " bytes behind the end of an allocation of " + std::to_string(item.size) + " bytes";
  }
  return "";
}

using Snapshot = std::vector<std::vector<char>>;
Snapshot snapshot() {
  Snapshot result;
  for (auto& [pointer, item] : state().allocations)
    result.emplace_back(pointer, pointer + item.size);
  return result;
}
void restore(const Snapshot& saved) {
  size_t i = 0;
  for (auto& [pointer, item] : state().allocations) {
    memcpy(pointer, saved[i].data(), item.size);
    ++i;
  }
}
std::string difference(const Snapshot& expected) {
  size_t i = 0;
  for (auto& [pointer, item] : state().allocations) {
    for (size_t byte = 0; byte < item.size; ++byte)
      if (pointer[byte] != expected[i][byte])
        return "the result depends on the order of threads (a race): byte " + std::to_string(byte) +
               " of an allocation of " + std::to_string(item.size) + " bytes";
    ++i;
  }
  return "";
}

// Whether an argument of a kernel is an address of the host's memory, which a GPU cannot reach.
// Nothing else that has eight bytes is likely to be the address of a page that is there.
bool is_of_host(const std::vector<char>& argument) {
  size_t address;
  if (argument.size() != sizeof address) return false;
  memcpy(&address, argument.data(), sizeof address);
  auto next = state().allocations.upper_bound(reinterpret_cast<char*>(address));
  if (next != state().allocations.begin()) {
    const Allocation& item = std::prev(next)->second;
    if (address < reinterpret_cast<size_t>(item.base) + item.mapped) return false;
  }
  unsigned char resident;
  return mincore(reinterpret_cast<void*>(address / kPage * kPage), 1, &resident) == 0;
}

std::string execute(const Step& step) {
  for (size_t i = 0; i < step.arguments.size(); ++i)
    if (is_of_host(step.arguments[i]))
      return step.name + ": argument " + std::to_string(i) + " is an address of the host";
  std::vector<void*> arguments;
  for (auto& argument : step.arguments) arguments.push_back(const_cast<char*>(argument.data()));
  Launch wanted{step.kernel, step.name.c_str(), step.grid, step.block, step.shared_bytes,
                step.raised, arguments.data()};
  State& s = state();
  if (!s.races) return run(wanted, false);
  Snapshot before = snapshot();
  std::string error = run(wanted, true);
  if (!error.empty()) return error;
  Snapshot other = snapshot();
  restore(before);
  error = run(wanted, false);
  if (!error.empty()) return error;
  error = difference(other);
  return error.empty() ? error : step.name + ": " + error;
}
}  // namespace

State& state() {
  static State one;
  return one;
}

std::string describe_address(const void* address) {
  const char* at = static_cast<const char*>(address);
  if (!address) return "an address that is no memory (misaligned or null)";
  for (auto& [pointer, item] : state().allocations) {
    if (at >= item.base && at < item.base + item.mapped)
      return "byte " + std::to_string(at - pointer) + " of an allocation of " +
             std::to_string(item.size) + " bytes";
  }
  return "an address outside of all allocations and of its shared memory";
}

Code injected(const char* function) {
  State& s = state();
  auto found = s.failures.find(function);
  if (found == s.failures.end()) return kSuccess;
  if (found->second.after-- > 0) return kSuccess;
  return s.last = found->second.code;
}

Code fail(Code code, const std::string& message) {
  State& s = state();
  s.message = message;
  return s.last = code;
}

Code allocate(void** result, size_t size) {
  State& s = state();
  std::lock_guard<std::recursive_mutex> lock(s.mutex);
  *result = nullptr;
  if (size == 0) return kSuccess;
  if (s.used + size > s.total)
    return fail(kOutOfMemory, std::to_string(size) + " bytes asked for, " +
                                  std::to_string(s.total - s.used) + " free");
  size_t pages = up(up(size, kAlignment), kPage);
  void* base = mmap(nullptr, pages + kPage, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return fail(kOutOfMemory, "the host gives no " + std::to_string(pages) + " bytes: " + strerror(errno));
  char* end = static_cast<char*>(base) + pages;
  mprotect(end, kPage, PROT_NONE);
  char* pointer = end - up(size, kAlignment);
  if (size <= (size_t(64) << 20)) memset(pointer, kFresh, size);
  memset(pointer + size, kCanary, end - pointer - size);
  s.allocations[pointer] = {static_cast<char*>(base), pages + kPage, size};
  s.used += size;
  s.peak = std::max(s.peak, s.used);
  *result = pointer;
  return kSuccess;
}

Code release(void* pointer) {
  State& s = state();
  std::lock_guard<std::recursive_mutex> lock(s.mutex);
  if (!pointer) return kSuccess;
  auto found = s.allocations.find(static_cast<char*>(pointer));
  if (found == s.allocations.end()) return fail(kInvalidValue, "this memory was not allocated");
  munmap(found->second.base, found->second.mapped);
  s.used -= found->second.size;
  s.allocations.erase(found);
  return kSuccess;
}

Stream* stream_of(void* handle) {
  static Stream standard;
  auto value = reinterpret_cast<size_t>(handle);
  return value <= 2 ? &standard : static_cast<Stream*>(handle);
}

Code copy(Stream* stream, void* to, const void* from, size_t bytes, int kind) {
  State& s = state();
  std::lock_guard<std::recursive_mutex> lock(s.mutex);
  if (s.sticky) return s.last = s.sticky;
  if (stream->capturing) {
    Step step;
    step.to = to, step.from = from, step.bytes = bytes;
    stream->captured.steps.push_back(std::move(step));
    return kSuccess;
  }
  if (kind == 1) s.to_device += bytes;
  if (kind == 2) s.to_host += bytes;
  memmove(to, from, bytes);
  return kSuccess;
}

Code fill(Stream* stream, void* to, int value, size_t bytes) {
  State& s = state();
  std::lock_guard<std::recursive_mutex> lock(s.mutex);
  if (stream->capturing) {
    Step step;
    step.to = to, step.bytes = bytes, step.value = value, step.fill = true;
    stream->captured.steps.push_back(std::move(step));
    return kSuccess;
  }
  memset(to, value, bytes);
  return kSuccess;
}

std::string refusal(const Step& step, int dynamic_limit) {
  auto beyond = [](const dim3& size, int first) {  // the limits of x, y and z
    return !size.x || !size.y || !size.z || size.x > unsigned(attribute(first)) ||
           size.y > unsigned(attribute(first + 1)) || size.z > unsigned(attribute(first + 2));
  };
  auto text = [](const dim3& size) {
    return std::to_string(size.x) + " x " + std::to_string(size.y) + " x " + std::to_string(size.z);
  };
  if (beyond(step.block, 2) || size_t(step.block.x) * step.block.y * step.block.z > unsigned(attribute(1)))
    return step.name + ": a block of " + text(step.block) + " threads cannot be launched";
  if (beyond(step.grid, 5))
    return step.name + ": a grid of " + text(step.grid) + " blocks cannot be launched";
  if (static_cast<int>(step.shared_bytes) > dynamic_limit)
    return step.name + " may not use " + std::to_string(step.shared_bytes) + " bytes of shared memory";
  return "";
}

Code launch(Stream* stream, Step step) {
  State& s = state();
  std::lock_guard<std::recursive_mutex> lock(s.mutex);
  if (s.sticky) return s.last = s.sticky;
  s.busy = !stream->capturing;
  if (stream->capturing) {
    stream->captured.steps.push_back(std::move(step));
    return kSuccess;
  }
  ++s.launches;
  if (s.dry) return kSuccess;
  char text[128];
  snprintf(text, sizeof text, " %u %u %u %u %u %u %u", step.grid.x, step.grid.y, step.grid.z,
           step.block.x, step.block.y, step.block.z, step.shared_bytes);
  s.log.push_back(step.name + text);
  std::string error = execute(step);
  if (error.empty()) error = damaged();
  if (error.empty()) return kSuccess;
  // As on the device, every later call fails too, until the test resets it.
  s.sticky = kIllegalAddress;
  return fail(kIllegalAddress, error);
}

Code replay(const Graph& graph) {
  ++state().graph_launches;
  for (const Step& step : graph.steps) {
    Stream* stream = stream_of(nullptr);
    Code code = step.kernel ? launch(stream, step)
                : step.fill ? fill(stream, step.to, step.value, step.bytes)
                            : copy(stream, step.to, step.from, step.bytes, 4);
    if (code) return code;
  }
  return kSuccess;
}

// cudaDeviceAttr and CUdevice_attribute share their numbers. Values of an H100 SXM.
int attribute(int which) {
  static const std::map<int, int> values = {
      {1, 1024}, {2, 1024}, {3, 1024}, {4, 64}, {5, 2147483647}, {6, 65535}, {7, 65535},
      {8, 49152}, {9, 65536}, {10, 32}, {12, 65536}, {13, 1980000}, {15, 1}, {16, 132}, {18, 0},
      {31, 1}, {36, 2619000}, {37, 5120}, {38, 50 << 20}, {39, 2048}, {40, 3}, {41, 1}, {78, 1},
      {81, 233472}, {82, 65536}, {83, 1}, {95, 1}, {97, 232448}, {106, 32}, {111, 1024}, {115, 1}};
  if (which == 75) return state().major;
  if (which == 76) return state().minor;
  auto found = values.find(which);
  return found == values.end() ? 0 : found->second;
}

const char* error_name(Code code) {
  switch (code) {
    case kSuccess: return "cudaSuccess";
    case kInvalidValue: return "cudaErrorInvalidValue";
    case kOutOfMemory: return "cudaErrorMemoryAllocation";
    case kInsufficientDriver: return "cudaErrorInsufficientDriver";
    case kNoDevice: return "cudaErrorNoDevice";
    case kInvalidDevice: return "cudaErrorInvalidDevice";
    case kInvalidImage: return "cudaErrorInvalidKernelImage";
    case kNoBinaryForGpu: return "cudaErrorNoKernelImageForDevice";
    case kInvalidHandle: return "cudaErrorInvalidResourceHandle";
    case kNotFound: return "cudaErrorSymbolNotFound";
    case kNotReady: return "cudaErrorNotReady";
    case kIllegalAddress: return "cudaErrorIllegalAddress";
    case kCaptureUnsupported: return "cudaErrorStreamCaptureUnsupported";
    case kCaptureInvalidated: return "cudaErrorStreamCaptureInvalidated";
    default: return "cudaErrorUnknown";
  }
}

const char* error_text(Code code) {
  static std::string text;
  switch (code) {
    case kSuccess: return "no error";
    case kOutOfMemory: return "out of memory";
    case kInsufficientDriver: return "CUDA driver version is insufficient for CUDA runtime version";
    case kNoDevice: return "no CUDA-capable device is detected";
    case kInvalidDevice: return "invalid device ordinal";
    case kNoBinaryForGpu: return "no kernel image is available for execution on the device";
    case kInvalidImage: return "device kernel image is invalid";
    case kInvalidHandle: return "invalid resource handle";
    case kNotReady: return "device not ready";
    case kCaptureUnsupported: return "operation not permitted when stream is capturing";
    case kCaptureInvalidated: return "operation failed due to a previous error during capture";
    case kIllegalAddress: text = "an illegal memory access was encountered: " + state().message; return text.c_str();
    default: return "unknown error";
  }
}

}  // namespace emulator

// ---- what tests say to the device (ctypes) ----
using emulator::state;
extern "C" {
void emulator_set_failure(const char* function, int code, int after) {
  if (code) state().failures[function] = {code, after};
  else state().failures.erase(function);
}
void emulator_reset() {
  auto& s = state();
  s.failures.clear();
  s.log.clear();
  s.message.clear();
  s.last = s.sticky = 0;
  s.launches = s.graph_launches = s.to_device = s.to_host = 0;
  s.peak = s.used;
  s.total = size_t(80) << 30;
  s.devices = 1, s.driver_version = 13000, s.major = 9, s.minor = 0;
  s.races = s.dry = s.busy = false;
}
void emulator_set(const char* name, long long value) {
  auto& s = state();
  std::string key = name;
  if (key == "memory") s.total = value;
  else if (key == "devices") s.devices = value;
  else if (key == "driver_version") s.driver_version = value;
  else if (key == "capability") s.major = value / 10, s.minor = value % 10;
  else if (key == "races") s.races = value;
  else if (key == "dry") s.dry = value;
}
long long emulator_get(const char* name) {
  auto& s = state();
  std::string key = name;
  if (key == "used") return s.used;
  if (key == "peak") return s.peak;
  if (key == "allocations") return s.allocations.size();
  if (key == "launches") return s.launches;
  if (key == "graph_launches") return s.graph_launches;
  if (key == "to_device") return s.to_device;
  if (key == "to_host") return s.to_host;
  return -1;
}
const char* emulator_message() { return state().message.c_str(); }
const char* emulator_log() {
  static std::string text;
  text.clear();
  for (auto& line : state().log) text += line + "\n";
  return text.c_str();
}
}
