// Runs the blocks of a kernel, one after the other, with a fiber per thread.
#pragma once
#include <csetjmp>
#include <string>
#include <vector>

#include "kernel.h"

namespace emulator {

struct Launch {
  const Kernel* kernel;
  const char* name;
  dim3 grid, block;
  unsigned shared_bytes;
  bool raised;  // whether its shared memory may exceed what every kernel has
  void** arguments;
};

// Runs a launch. `reversed` starts blocks, and threads between barriers, in the opposite order.
// Returns an empty text, or what went wrong.
std::string run(const Launch& launch, bool reversed);

// Where an address lies that a kernel may not touch; the driver knows the allocations.
std::string describe_address(const void* address);

}  // namespace emulator
