// Runs a compiled network from C++: no Python, no compiler, only tvm-ffi's headers and TVM's runtime.
//
//   run model.so 2,1,32,32 < input.f32 > output.f32
//
// model.so is the member of that name of a module that was exported with its weights inside:
//
//   ms.export(net, x, file_name="model", file_format="TVM", frozen=True)
//   unzip model.tvm model.so
//
// Input and output are float32 numbers in row-major order. See build.sh for how to build.
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/extra/module.h>
#include <tvm/ffi/function.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <sstream>
#include <string>
#include <vector>

namespace ffi = tvm::ffi;

// Generated vector code reads memory in aligned steps of 64 bytes.
constexpr size_t kAlignment = 64;
// TVM's allocator that keeps freed blocks for the next call.
constexpr int kPooledAllocator = 2;

struct AlignedMemory {
  void AllocData(DLTensor* tensor) {
    size_t bytes = ffi::GetDataSize(*tensor);
    tensor->data = std::aligned_alloc(kAlignment, (bytes / kAlignment + 1) * kAlignment);
  }
  void FreeData(DLTensor* tensor) { std::free(tensor->data); }
};

std::vector<int64_t> ParseShape(const std::string& text) {
  std::vector<int64_t> shape;
  std::istringstream stream(text);
  for (std::string size; std::getline(stream, size, ',');) shape.push_back(std::stoll(size));
  return shape;
}

size_t Count(const ffi::Tensor& tensor) {
  size_t count = 1;
  for (int64_t size : tensor.shape()) count *= size;
  return count;
}

void Write(const ffi::Tensor& tensor) {
  std::fwrite(tensor.data_ptr(), sizeof(float), Count(tensor), stdout);
}

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s model.so 1,3,224,224 < input.f32 > output.f32\n", argv[0]);
    return 2;
  }
  try {
    ffi::Module library = ffi::Module::LoadFromFile(argv[1]);
    // One virtual machine serves one thread; further ones share the code of the library.
    ffi::Module machine = (*library->GetFunction("vm_load_executable"))().cast<ffi::Module>();
    (*machine->GetFunction("vm_initialization"))(static_cast<int>(kDLCPU), 0, kPooledAllocator);
    ffi::Function run = *machine->GetFunction("main");

    std::vector<int64_t> shape = ParseShape(argv[2]);
    ffi::Tensor input = ffi::Tensor::FromNDAlloc(AlignedMemory(), ffi::Shape(shape),
                                                 DLDataType{kDLFloat, 32, 1}, DLDevice{kDLCPU, 0});
    if (std::fread(input.data_ptr(), sizeof(float), Count(input), stdin) != Count(input)) {
      std::fprintf(stderr, "the input is shorter than %s\n", argv[2]);
      return 1;
    }
    ffi::Any result = run(input);
    if (auto single = result.try_cast<ffi::Tensor>()) {
      Write(*single);
    } else {
      for (const ffi::Tensor& output : result.cast<ffi::Array<ffi::Tensor>>()) Write(output);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
