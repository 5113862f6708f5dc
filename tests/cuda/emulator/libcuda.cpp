// The driver's interface (libcuda.so.1), as far as TVM and tvmgraph call it.
#include <dlfcn.h>
#include <elf.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "driver.h"

using namespace emulator;

namespace {
struct Module {
  void* library;
};
struct Function {
  const Kernel* kernel;
  std::string name;
  int dynamic_limit = 48 << 10;
};
struct LaunchConfig {
  unsigned grid[3], block[3], shared_bytes;
  void* stream;
  void* attributes;
  unsigned attribute_count;
};

// A module is a shared object for the host; its section table, at the end, tells its size.
size_t object_size(const void* image) {
  auto* header = static_cast<const Elf64_Ehdr*>(image);
  bool ours = memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 && header->e_type == ET_DYN &&
              header->e_machine != 190;  // 190: a cubin for a real device
  return ours ? header->e_shoff + size_t(header->e_shnum) * header->e_shentsize : 0;
}

void* open_object(const void* image, size_t size) {
  char path[] = "/tmp/emulated-kernels-XXXXXX";  // never the same: dlopen knows libraries by path
  int file = mkstemp(path);
  bool written = file >= 0 && write(file, image, size) == static_cast<ssize_t>(size);
  void* library = written ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
  if (!library) state().message = written ? dlerror() : "the module cannot be written to /tmp";
  if (file >= 0) close(file), unlink(path);
  return library;
}

Code start(const char* function) {
  if (Code code = injected(function)) return code;
  return state().devices == 0 ? kNoDevice : kSuccess;
}
}  // namespace

#define API extern "C" __attribute__((visibility("default"))) int
API cuInit(unsigned) { return start("cuInit"); }
API cuDriverGetVersion(int* version) {
  if (Code code = injected("cuDriverGetVersion")) return code;
  *version = state().driver_version;
  return kSuccess;
}
API cuDeviceGetCount(int* count) {
  if (Code code = injected("cuDeviceGetCount")) return code;
  *count = state().devices;
  return kSuccess;
}
API cuDeviceGet(int* device, int ordinal) {
  if (Code code = start("cuDeviceGet")) return code;
  if (ordinal < 0 || ordinal >= state().devices) return kInvalidDevice;
  *device = ordinal;
  return kSuccess;
}
API cuDeviceGetName(char* name, int length, int device) {
  if (device < 0 || device >= state().devices) return kInvalidDevice;
  snprintf(name, length, "Emulated NVIDIA H100");
  return kSuccess;
}
API cuDeviceGetAttribute(int* value, int which, int) {
  *value = attribute(which);
  return kSuccess;
}
API cuDeviceTotalMem_v2(size_t* bytes, int) {
  *bytes = state().total;
  return kSuccess;
}
API cuMemGetInfo_v2(size_t* free, size_t* total) {
  *total = state().total;
  *free = state().total - state().used;
  return kSuccess;
}
API cuDevicePrimaryCtxRetain(void** context, int) {
  if (Code code = start("cuDevicePrimaryCtxRetain")) return code;
  *context = &state();
  return kSuccess;
}
API cuDevicePrimaryCtxRelease_v2(int) { return kSuccess; }
API cuCtxSetCurrent(void*) { return kSuccess; }
API cuCtxGetCurrent(void** context) { *context = &state(); return kSuccess; }
API cuCtxSynchronize() { return state().sticky; }
API cuGetErrorName(int code, const char** name) { *name = error_name(code); return kSuccess; }
API cuGetErrorString(int code, const char** text) { *text = error_text(code); return kSuccess; }

API cuModuleLoadData(void** module, const void* image) {
  if (Code code = start("cuModuleLoadData")) return code;
  size_t size = object_size(image);
  if (!size) return fail(kInvalidImage, "the module was not compiled for the emulated device");
  void* library = open_object(image, size);
  if (!library) return fail(kInvalidImage, state().message);
  int built = *static_cast<int*>(dlsym(library, "emulator_capability"));
  if (built / 10 != state().major || built % 10 > state().minor)
    return fail(kNoBinaryForGpu, "the module was compiled for sm_" + std::to_string(built));
  *module = new Module{library};
  return kSuccess;
}
API cuModuleUnload(void* module) {
  auto* loaded = static_cast<Module*>(module);
  dlclose(loaded->library);
  delete loaded;
  return kSuccess;
}
API cuModuleGetFunction(void** function, void* module, const char* name) {
  auto* kernel = static_cast<Kernel*>(
      dlsym(static_cast<Module*>(module)->library, (std::string("emulator_kernel_") + name).c_str()));
  if (!kernel) return fail(kNotFound, std::string("no kernel ") + name);
  *function = new Function{kernel, name};
  return kSuccess;
}
API cuFuncSetAttribute(void* function, int which, int value) {
  if (which == 8) {
    if (value > attribute(97)) return fail(kInvalidValue, "more shared memory than a block has");
    static_cast<Function*>(function)->dynamic_limit = value;
  }
  return kSuccess;
}
API cuLaunchKernelEx(const LaunchConfig* config, void* function, void** arguments, void**) {
  if (Code code = start("cuLaunchKernel")) return code;
  auto* wanted = static_cast<Function*>(function);
  Step step;
  step.kernel = wanted->kernel, step.name = wanted->name, step.shared_bytes = config->shared_bytes;
  step.grid = {config->grid[0], config->grid[1], config->grid[2]};
  step.block = {config->block[0], config->block[1], config->block[2]};
  step.raised = wanted->dynamic_limit > attribute(8);
  if (std::string text = refusal(step, wanted->dynamic_limit); !text.empty())
    return fail(kInvalidValue, text);
  for (int i = 0; i < wanted->kernel->count; ++i) {
    auto* bytes = static_cast<const char*>(arguments[i]);
    step.arguments.emplace_back(bytes, bytes + wanted->kernel->sizes[i]);
  }
  return launch(stream_of(config->stream), std::move(step));
}
API cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, void* stream, void** arguments, void** extra) {
  LaunchConfig config{{gx, gy, gz}, {bx, by, bz}, shared, stream, nullptr, 0};
  return cuLaunchKernelEx(&config, function, arguments, extra);
}
API cuTensorMapEncodeTiled(...) { return fail(kInvalidValue, "tensor maps are not emulated"); }
