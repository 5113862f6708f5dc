// The runtime's interface (libcudart.so), as far as TVM and tvmgraph call it.
#include <chrono>
#include <cstring>

#include "driver.h"

using namespace emulator;

namespace {
struct Event {
  bool timed, recorded = false;
  std::chrono::steady_clock::time_point time;
};
constexpr unsigned kTimeless = 2;  // cudaEventDisableTiming

Code start(const char* function) {
  if (Code code = injected(function)) return code;
  State& s = state();
  if (s.driver_version < 13000) return s.last = kInsufficientDriver;
  if (s.devices == 0) return s.last = kNoDevice;
  return kSuccess;
}
Code checked(Code code) { return code ? state().last = code : kSuccess; }

// Everything is done: nobody who asks is told to wait.
Code finished() {
  state().busy = false;
  return checked(state().sticky);
}

// As on a device, work may still be under way when somebody asks, and that counts as an error.
Code asked() {
  if (!state().busy) return checked(state().sticky);
  state().busy = false;
  return checked(kNotReady);
}

// Where cudaDeviceProp (CUDA 13) keeps what is filled in.
template <class T>
void put(void* properties, size_t offset, T value) {
  memcpy(static_cast<char*>(properties) + offset, &value, sizeof value);
}
}  // namespace

#define API extern "C" __attribute__((visibility("default"))) int
API cudaGetDeviceCount(int* count) {
  *count = 0;
  if (Code code = start("cudaGetDeviceCount")) return code;
  *count = state().devices;
  return kSuccess;
}
API cudaGetDevice(int* device) { *device = state().device; return kSuccess; }
API cudaSetDevice(int device) {
  if (Code code = start("cudaSetDevice")) return code;
  if (device < 0 || device >= state().devices) return checked(kInvalidDevice);
  state().device = device;
  return kSuccess;
}
API cudaDeviceGetAttribute(int* value, int which, int device) {
  if (Code code = start("cudaDeviceGetAttribute")) return code;
  if (device < 0 || device >= state().devices) return checked(kInvalidDevice);
  *value = attribute(which);
  return kSuccess;
}
API cudaGetDeviceProperties(void* properties, int device) {
  if (Code code = start("cudaGetDeviceProperties")) return code;
  if (device < 0 || device >= state().devices) return checked(kInvalidDevice);
  memset(properties, 0, 1008);
  strcpy(static_cast<char*>(properties), "Emulated NVIDIA H100");
  put(properties, 288, state().total);
  put(properties, 296, size_t(49152));
  put(properties, 304, 65536);
  put(properties, 308, 32);
  put(properties, 320, 1024);
  put(properties, 360, state().major);
  put(properties, 364, state().minor);
  put(properties, 384, attribute(16));
  put(properties, 592, attribute(37));
  put(properties, 596, attribute(38));
  put(properties, 604, 2048);
  put(properties, 624, size_t(attribute(81)));
  put(properties, 632, 65536);
  put(properties, 672, size_t(attribute(97)));
  return kSuccess;
}
API cudaDriverGetVersion(int* version) { *version = state().driver_version; return kSuccess; }
API cudaRuntimeGetVersion(int* version) { *version = 13000; return kSuccess; }
API cudaDeviceSynchronize() { return finished(); }
API cudaGetLastError() {
  Code code = state().last;
  state().last = state().sticky;
  return code;
}
API cudaPeekAtLastError() { return state().last; }
extern "C" const char* cudaGetErrorName(int code) { return error_name(code); }
extern "C" const char* cudaGetErrorString(int code) { return error_text(code); }

API cudaMalloc(void** pointer, size_t size) {
  if (Code code = start("cudaMalloc")) return code;
  return allocate(pointer, size);
}
API cudaMallocAsync(void** pointer, size_t size, void*) { return cudaMalloc(pointer, size); }
API cudaMallocHost(void** pointer, size_t size) {
  if (Code code = start("cudaMallocHost")) return code;
  *pointer = aligned_alloc(64, (size + 63) / 64 * 64);
  return *pointer ? kSuccess : kOutOfMemory;
}
API cudaFree(void* pointer) { return release(pointer); }
API cudaFreeAsync(void* pointer, void*) { return release(pointer); }
API cudaFreeHost(void* pointer) { free(pointer); return kSuccess; }
API cudaMemGetInfo(size_t* free, size_t* total) {
  if (Code code = start("cudaMemGetInfo")) return code;
  *total = state().total;
  *free = state().total - state().used;
  return kSuccess;
}
API cudaMemcpyAsync(void* to, const void* from, size_t bytes, int kind, void* stream) {
  if (Code code = start("cudaMemcpy")) return code;
  return copy(stream_of(stream), to, from, bytes, kind);
}
API cudaMemcpy(void* to, const void* from, size_t bytes, int kind) {
  return cudaMemcpyAsync(to, from, bytes, kind, nullptr);
}
API cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t bytes, void* stream) {
  return cudaMemcpyAsync(to, from, bytes, 3, stream);
}
API cudaMemsetAsync(void* to, int value, size_t bytes, void* stream) {
  if (Code code = start("cudaMemset")) return code;
  return fill(stream_of(stream), to, value, bytes);
}
API cudaMemset(void* to, int value, size_t bytes) { return cudaMemsetAsync(to, value, bytes, nullptr); }

API cudaStreamCreate(void** stream) {
  if (Code code = start("cudaStreamCreate")) return code;
  *stream = new Stream;
  return kSuccess;
}
API cudaStreamCreateWithFlags(void** stream, unsigned) { return cudaStreamCreate(stream); }
API cudaStreamDestroy(void* stream) { delete static_cast<Stream*>(stream); return kSuccess; }
API cudaStreamSynchronize(void* stream) {
  if (Code code = injected("cudaStreamSynchronize")) return code;
  if (Stream* target = stream_of(stream); target->capturing) {
    target->spoiled = true;
    return checked(kCaptureUnsupported);
  }
  return finished();
}
API cudaStreamQuery(void*) { return asked(); }
API cudaStreamWaitEvent(void*, void*, unsigned) { return kSuccess; }

API cudaEventCreateWithFlags(void** event, unsigned flags) {
  *event = new Event{!(flags & kTimeless)};
  return kSuccess;
}
API cudaEventCreate(void** event) { return cudaEventCreateWithFlags(event, 0); }
API cudaEventDestroy(void* event) { delete static_cast<Event*>(event); return kSuccess; }
API cudaEventRecord(void* event, void*) {
  auto* target = static_cast<Event*>(event);
  target->recorded = true, target->time = std::chrono::steady_clock::now();
  return kSuccess;
}
API cudaEventQuery(void*) { return asked(); }
API cudaEventSynchronize(void*) { return finished(); }
API cudaEventElapsedTime(float* milliseconds, void* from, void* to) {
  auto *first = static_cast<Event*>(from), *second = static_cast<Event*>(to);
  for (Event* event : {first, second})
    if (!event->timed || !event->recorded) return checked(kInvalidHandle);
  *milliseconds = std::chrono::duration<float, std::milli>(second->time - first->time).count();
  return kSuccess;
}

API cudaStreamBeginCapture(void* stream, int) {
  if (Code code = start("cudaStreamBeginCapture")) return code;
  Stream* target = stream_of(stream);
  if (!stream) return checked(kCaptureUnsupported);  // the default stream
  target->capturing = true, target->spoiled = false;
  target->captured.steps.clear();
  return kSuccess;
}
API cudaStreamEndCapture(void* stream, void** graph) {
  Stream* target = stream_of(stream);
  target->capturing = false;
  *graph = nullptr;
  if (target->spoiled) return checked(kCaptureInvalidated);
  *graph = new Graph(std::move(target->captured));
  return kSuccess;
}
API cudaStreamIsCapturing(void* stream, int* status) {
  *status = stream_of(stream)->capturing;
  return kSuccess;
}
API cudaGraphInstantiate(void** executable, void* graph, unsigned long long) {
  if (Code code = start("cudaGraphInstantiate")) return code;
  *executable = new Graph(*static_cast<Graph*>(graph));
  return kSuccess;
}
API cudaGraphLaunch(void* executable, void*) {
  if (Code code = start("cudaGraphLaunch")) return code;
  return replay(*static_cast<Graph*>(executable));
}
API cudaGraphDestroy(void* graph) { delete static_cast<Graph*>(graph); return kSuccess; }
API cudaGraphExecDestroy(void* executable) { delete static_cast<Graph*>(executable); return kSuccess; }
