/* Calls one kernel of a library on float32 numbers: kernel_main lib.so symbol count < in > out */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <tvm/ffi/c_api.h>

/* The library raises its errors through this function of the runtime. */
void TVMFFIErrorSetRaisedFromCStrParts(const char* kind, const char** parts, int32_t count) {
  fprintf(stderr, "%s: ", kind);
  for (int32_t i = 0; i < count; ++i) fputs(parts[i], stderr);
  fputc('\n', stderr);
}

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  void* library = dlopen(argv[1], RTLD_NOW);
  TVMFFISafeCallType kernel = library ? (TVMFFISafeCallType)dlsym(library, argv[2]) : NULL;
  if (!kernel) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  int64_t count = atoll(argv[3]);
  size_t bytes = (count * sizeof(float) / 64 + 1) * 64;
  DLTensor tensors[2];
  TVMFFIAny args[2], result = {0};
  for (int i = 0; i < 2; ++i) {
    DLTensor tensor = {aligned_alloc(64, bytes), {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, &count};
    tensors[i] = tensor;
    args[i].type_index = kTVMFFIDLTensorPtr;
    args[i].zero_padding = 0;
    args[i].v_ptr = &tensors[i];
  }
  if (fread(tensors[0].data, sizeof(float), count, stdin) != (size_t)count) return 1;
  int status = kernel(NULL, args, 2, &result);
  fwrite(tensors[1].data, sizeof(float), count, stdout);
  return status;
}
