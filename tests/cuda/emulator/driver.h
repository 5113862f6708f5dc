// The state behind the emulated libcuda and libcudart.
#pragma once
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "engine.h"

namespace emulator {

using Code = int;
constexpr Code kSuccess = 0, kInvalidValue = 1, kOutOfMemory = 2, kInsufficientDriver = 35,
               kNoDevice = 100, kInvalidDevice = 101, kInvalidImage = 200, kNoBinaryForGpu = 209,
               kInvalidHandle = 400, kNotFound = 500, kNotReady = 600, kIllegalAddress = 700, kLaunchFailed = 719, kCaptureUnsupported = 900,
               kCaptureInvalidated = 901;

struct Allocation {
  char* base;      // of the pages
  size_t mapped;   // their size, with the guard page
  size_t size;     // as asked for
};

// One call of a stream, kept while a graph is captured.
struct Step {
  const Kernel* kernel = nullptr;
  std::string name;
  dim3 grid, block;
  unsigned shared_bytes = 0;
  bool raised = false;  // whether it was allowed more shared memory than every kernel is
  std::vector<std::vector<char>> arguments;
  void* to = nullptr;
  const void* from = nullptr;
  size_t bytes = 0;
  int value = 0;
  bool fill = false;
};

struct Graph {
  std::vector<Step> steps;
};

struct Stream {
  bool capturing = false, spoiled = false;  // spoiled: by a call that cannot be captured
  Graph captured;
};

struct Failure {
  Code code;
  int after;  // calls that still succeed
};

struct State {
  std::recursive_mutex mutex;
  std::map<char*, Allocation> allocations;
  std::map<std::string, Failure> failures;
  std::vector<std::string> log;
  std::string message;
  size_t used = 0, peak = 0, total = size_t(80) << 30;
  size_t to_device = 0, to_host = 0, launches = 0, graph_launches = 0;
  int device = 0, devices = 1, driver_version = 13000, major = 9, minor = 0;
  Code last = kSuccess, sticky = kSuccess;
  bool races = false, dry = false;  // dry: launches are counted, not run
  bool busy = false;                // whether somebody who asks hears that work is under way, once
};

State& state();
// What a call of this name is told to return instead of doing its work; 0 for none.
Code injected(const char* function);
Code fail(Code code, const std::string& message);
Code allocate(void** result, size_t size);
Code release(void* pointer);
Code copy(Stream* stream, void* to, const void* from, size_t bytes, int kind);
Code fill(Stream* stream, void* to, int value, size_t bytes);
// What a device says of a launch before it begins: an empty text, or what it refuses.
std::string refusal(const Step& step, int dynamic_limit);
Code launch(Stream* stream, Step step);
Code replay(const Graph& graph);
Stream* stream_of(void* handle);
int attribute(int which);
const char* error_name(Code code);
const char* error_text(Code code);

}  // namespace emulator
