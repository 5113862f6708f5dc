// What CUDA C offers to a kernel, on the host. Every thread of a block is a fiber of the engine.
#pragma once
#include <algorithm>
#include <limits>
#include <utility>

#include "types.h"

#define __CUDACC__ 1
#define __CUDACC_VER_MAJOR__ 13
#define __CUDACC_VER_MINOR__ 0
#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline
#define __noinline__
#define __launch_bounds__(...)
#define __grid_constant__
#define __cluster_dims__(...)
#define __align__(n) alignas(n)
#define CUDART_INF_F (std::numeric_limits<float>::infinity())
#define CUDART_NAN_F (std::numeric_limits<float>::quiet_NaN())
#define CUDART_INF (std::numeric_limits<double>::infinity())
#define CUDART_NAN (std::numeric_limits<double>::quiet_NaN())

namespace emulator {

// The thread that runs.
struct Current {
  uint3 thread, block;
  dim3 block_size, grid_size;
  unsigned lane, warp;
};

// A value per lane, and which lanes gave one.
struct Exchange {
  static constexpr int kBytes = 128;
  unsigned lanes;
  alignas(64) unsigned char slots[32][kBytes];
  template <class T>
  T get(unsigned lane) const {
    T value;
    if (lanes >> lane & 1) {
      std::memcpy(&value, slots[lane], sizeof(T));
    } else {
      std::memset(&value, 0xFF, sizeof(T));  // undefined on the device
    }
    return value;
  }
};

// How the engine calls a kernel.
struct Kernel {
  void (*run)(void** arguments);
  int count;
  const unsigned* sizes;
};

}  // namespace emulator

extern "C" {
extern emulator::Current* emulator_current;
void emulator_sync_block(int line);
void emulator_sync_named(int barrier, int threads);
const emulator::Exchange* emulator_exchange(unsigned mask, const void* value, size_t size,
                                            int line = __builtin_LINE());
unsigned emulator_active();
void* emulator_static_shared(int declaration, size_t size, size_t alignment);
void* emulator_dynamic_shared(size_t alignment);
uint32_t emulator_shared_offset(const void* address);
char* emulator_shared_address(uint32_t offset);
void emulator_copy_later(void* to, const void* from, size_t size, size_t filled);
void emulator_close_copies();
void emulator_wait_copies(int left);
void emulator_publish();
void emulator_group_reads(uint32_t offset);
void emulator_close_group();
void emulator_wait_group(int left);
void emulator_error(const char* message);
}

#define threadIdx (emulator_current->thread)
#define blockIdx (emulator_current->block)
#define blockDim (emulator_current->block_size)
#define gridDim (emulator_current->grid_size)
#define warpSize 32
#define __syncthreads() emulator_sync_block(__LINE__)

namespace emulator {

template <class T>
inline const Exchange* exchange(unsigned mask, const T& value, int line = 0) {
  static_assert(sizeof(T) <= Exchange::kBytes);
  return emulator_exchange(mask, &value, sizeof(T), line);
}

inline unsigned segment(int width) { return emulator_current->lane & ~(width - 1u); }

template <class... A>
struct Caller {
  static constexpr unsigned kSizes[sizeof...(A) + 1] = {sizeof(A)..., 0};
  template <size_t... I>
  static void call(void (*kernel)(A...), void** arguments, std::index_sequence<I...>) {
    kernel(*static_cast<std::remove_reference_t<A>*>(arguments[I])...);
  }
};

template <class... A>
inline void call(void (*kernel)(A...), void** arguments) {
  Caller<A...>::call(kernel, arguments, std::index_sequence_for<A...>());
}
template <class... A>
constexpr Kernel describe(void (*)(A...), void (*run)(void**)) {
  return {run, sizeof...(A), Caller<A...>::kSizes};
}

}  // namespace emulator

// Written behind every kernel by the source filter.
#define EMULATOR_KERNEL(NAME)                                                                  \
  static void emulator_run_##NAME(void** arguments) { emulator::call(NAME, arguments); }       \
  extern "C" __attribute__((visibility("default"))) emulator::Kernel emulator_kernel_##NAME =  \
      emulator::describe(NAME, emulator_run_##NAME);

#define EMULATOR_CAPABILITY(NUMBER) \
  extern "C" __attribute__((visibility("default"))) int emulator_capability = NUMBER;

// ---- warps ----
inline void __syncwarp(unsigned mask = ~0u, int line = __builtin_LINE()) {
  emulator_exchange(mask, nullptr, 0, line);
}
inline unsigned __activemask() { return emulator_active(); }
template <class T>
inline T __shfl_sync(unsigned mask, T value, int lane, int width = 32, int line = __builtin_LINE()) {
  return emulator::exchange(mask, value, line)
      ->template get<T>(emulator::segment(width) + (lane & (width - 1)));
}
template <class T>
inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, int line = __builtin_LINE()) {
  unsigned lane = emulator_current->lane, source = lane + delta;
  auto* all = emulator::exchange(mask, value, line);
  return source < emulator::segment(width) + width ? all->template get<T>(source) : value;
}
template <class T>
inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, int line = __builtin_LINE()) {
  unsigned lane = emulator_current->lane;
  auto* all = emulator::exchange(mask, value, line);
  return lane >= emulator::segment(width) + delta ? all->template get<T>(lane - delta) : value;
}
template <class T>
inline T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32, int line = __builtin_LINE()) {
  unsigned source = emulator_current->lane ^ bits;
  auto* all = emulator::exchange(mask, value, line);
  return source < emulator::segment(width) + width ? all->template get<T>(source) : value;
}
inline unsigned __ballot_sync(unsigned mask, int predicate) {
  auto* all = emulator::exchange(mask, predicate);
  unsigned result = 0;
  for (unsigned lane = 0; lane < 32; ++lane)
    if ((all->lanes >> lane & 1) && all->get<int>(lane)) result |= 1u << lane;
  return result;
}
inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
inline int __all_sync(unsigned mask, int predicate) { return __ballot_sync(mask, !predicate) == 0; }
template <class T, class Combine>
inline T emulator_reduce(unsigned mask, T value, Combine combine) {
  auto* all = emulator::exchange(mask, value);
  bool first = true;
  T result{};
  for (unsigned lane = 0; lane < 32; ++lane) {
    if (!(all->lanes >> lane & 1)) continue;
    result = first ? all->template get<T>(lane) : combine(result, all->template get<T>(lane));
    first = false;
  }
  return result;
}
template <class T>
inline T __reduce_add_sync(unsigned m, T v) { return emulator_reduce(m, v, [](T a, T b) { return a + b; }); }
template <class T>
inline T __reduce_max_sync(unsigned m, T v) { return emulator_reduce(m, v, [](T a, T b) { return a > b ? a : b; }); }
template <class T>
inline T __reduce_min_sync(unsigned m, T v) { return emulator_reduce(m, v, [](T a, T b) { return a < b ? a : b; }); }

// ---- memory ----
inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __threadfence_system() {}
template <class T>
inline T __ldg(const T* address) { return *address; }
template <class T>
inline T __ldcs(const T* address) { return *address; }
template <class T>
inline T __ldcg(const T* address) { return *address; }
template <class T>
inline void __stcs(T* address, T value) { *address = value; }
inline size_t __cvta_generic_to_shared(const void* address) { return emulator_shared_offset(address); }

// Fibers switch only where they wait, so plain code is atomic.
template <class T, class V, class F>
inline T emulator_atomic(T* address, V value, F combine) {
  T old = *address;
  *address = combine(old, static_cast<T>(value));
  return old;
}
#define EMULATOR_ATOMIC(NAME, EXPRESSION)                                     \
  template <class T, class V>                                                 \
  inline T NAME(T* address, V value) {                                        \
    return emulator_atomic(address, value, [](T a, T b) -> T { return EXPRESSION; }); \
  }
EMULATOR_ATOMIC(atomicAdd, a + b)
EMULATOR_ATOMIC(atomicSub, a - b)
EMULATOR_ATOMIC(atomicMax, a > b ? a : b)
EMULATOR_ATOMIC(atomicMin, a < b ? a : b)
EMULATOR_ATOMIC(atomicAnd, a & b)
EMULATOR_ATOMIC(atomicOr, a | b)
EMULATOR_ATOMIC(atomicXor, a ^ b)
EMULATOR_ATOMIC(atomicExch, ((void)a, b))
template <class T>
inline T atomicCAS(T* address, T compare, T value) {
  T old = *address;
  if (old == compare) *address = value;
  return old;
}

// ---- scalar functions ----
inline int __float_as_int(float v) { return emulator::bits<int>(v); }
inline unsigned __float_as_uint(float v) { return emulator::bits<unsigned>(v); }
inline float __int_as_float(int v) { return emulator::bits<float>(v); }
inline float __uint_as_float(unsigned v) { return emulator::bits<float>(v); }
inline long long __double_as_longlong(double v) { return emulator::bits<long long>(v); }
inline double __longlong_as_double(long long v) { return emulator::bits<double>(v); }
inline int __popc(unsigned v) { return __builtin_popcount(v); }
inline int __popcll(unsigned long long v) { return __builtin_popcountll(v); }
inline int __clz(int v) { return v ? __builtin_clz(v) : 32; }
inline int __clzll(long long v) { return v ? __builtin_clzll(v) : 64; }
inline int __ffs(int v) { return __builtin_ffs(v); }
inline unsigned __umulhi(unsigned a, unsigned b) { return (static_cast<uint64_t>(a) * b) >> 32; }
inline int __mulhi(int a, int b) { return (static_cast<int64_t>(a) * b) >> 32; }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return (static_cast<unsigned __int128>(a) * b) >> 64;
}
inline int __dp4a(int a, int b, int c) {
  for (int i = 0; i < 4; ++i)
    c += static_cast<int8_t>(a >> (8 * i)) * static_cast<int8_t>(b >> (8 * i));
  return c;
}
using std::isfinite;
using std::isinf;
using std::isnan;
using std::signbit;
inline float rsqrtf(float v) { return 1.0f / std::sqrt(v); }
inline double rsqrt(double v) { return 1.0 / std::sqrt(v); }
inline float __frcp_rn(float v) { return 1.0f / v; }
inline float __fdividef(float a, float b) { return a / b; }
inline float __expf(float v) { return std::exp(v); }
inline float __logf(float v) { return std::log(v); }
inline float __powf(float a, float b) { return std::pow(a, b); }
inline float __saturatef(float v) { return v != v ? 0.0f : std::min(std::max(v, 0.0f), 1.0f); }
template <class A, class B, class R = std::common_type_t<A, B>>
inline std::enable_if_t<std::is_arithmetic_v<A> && std::is_arithmetic_v<B>, R> max(A a, B b) {
  if constexpr (std::is_floating_point_v<R>) return std::fmax(R(a), R(b));
  else return R(a) > R(b) ? R(a) : R(b);
}
template <class A, class B, class R = std::common_type_t<A, B>>
inline std::enable_if_t<std::is_arithmetic_v<A> && std::is_arithmetic_v<B>, R> min(A a, B b) {
  if constexpr (std::is_floating_point_v<R>) return std::fmin(R(a), R(b));
  else return R(a) < R(b) ? R(a) : R(b);
}

// ---- 16-bit floats ----
inline float __half2float(half v) { return v; }
inline half __float2half(float v) { return half(v); }
inline half __float2half_rn(float v) { return half(v); }
inline float __bfloat162float(nv_bfloat16 v) { return v; }
inline nv_bfloat16 __float2bfloat16(float v) { return nv_bfloat16(v); }
inline nv_bfloat16 __float2bfloat16_rn(float v) { return nv_bfloat16(v); }
inline half2 __float22half2_rn(float2 v) { return {half(v.x), half(v.y)}; }
inline half2 __floats2half2_rn(float x, float y) { return {half(x), half(y)}; }
inline nv_bfloat162 __float22bfloat162_rn(float2 v) { return {nv_bfloat16(v.x), nv_bfloat16(v.y)}; }
inline nv_bfloat162 __floats2bfloat162_rn(float x, float y) { return {nv_bfloat16(x), nv_bfloat16(y)}; }
inline float2 __half22float2(half2 v) { return make_float2(v.x, v.y); }
inline float2 __bfloat1622float2(nv_bfloat162 v) { return make_float2(v.x, v.y); }
inline unsigned short __half_as_ushort(half v) { return v.code; }
inline half __ushort_as_half(unsigned short v) { return emulator::bits<half>(v); }
inline unsigned short __bfloat16_as_ushort(nv_bfloat16 v) { return v.code; }
inline nv_bfloat16 __ushort_as_bfloat16(unsigned short v) { return emulator::bits<nv_bfloat16>(v); }

template <class C>
using EmulatorHalf = emulator::Float16<C>;
#define EMULATOR_COMPARE(NAME, OP) \
  template <class C> inline bool NAME(EmulatorHalf<C> a, EmulatorHalf<C> b) { return a OP b; }
EMULATOR_COMPARE(__hgt, >)
EMULATOR_COMPARE(__hlt, <)
EMULATOR_COMPARE(__hge, >=)
EMULATOR_COMPARE(__hle, <=)
EMULATOR_COMPARE(__heq, ==)
EMULATOR_COMPARE(__hne, !=)
#define EMULATOR_BINARY(NAME, CALL) \
  template <class C> inline EmulatorHalf<C> NAME(EmulatorHalf<C> a, EmulatorHalf<C> b) { return CALL; }
EMULATOR_BINARY(__hadd, a + b)
EMULATOR_BINARY(__hsub, a - b)
EMULATOR_BINARY(__hmul, a * b)
EMULATOR_BINARY(__hmul_rn, a * b)
EMULATOR_BINARY(__hdiv, a / b)
EMULATOR_BINARY(__hmax, std::fmax(float(a), float(b)))
EMULATOR_BINARY(__hmin, std::fmin(float(a), float(b)))
EMULATOR_BINARY(hpow, std::pow(float(a), float(b)))
EMULATOR_BINARY(fmod, std::fmod(float(a), float(b)))
EMULATOR_BINARY(hfmod, std::fmod(float(a), float(b)))
#define EMULATOR_UNARY(NAME, CALL) \
  template <class C> inline EmulatorHalf<C> NAME(EmulatorHalf<C> a) { return EmulatorHalf<C>(CALL); }
EMULATOR_UNARY(hexp, std::exp(float(a)))
EMULATOR_UNARY(hexp2, std::exp2(float(a)))
EMULATOR_UNARY(hexp10, std::pow(10.0f, float(a)))
EMULATOR_UNARY(hlog, std::log(float(a)))
EMULATOR_UNARY(hlog2, std::log2(float(a)))
EMULATOR_UNARY(hlog10, std::log10(float(a)))
EMULATOR_UNARY(hsqrt, std::sqrt(float(a)))
EMULATOR_UNARY(hrsqrt, 1.0f / std::sqrt(float(a)))
EMULATOR_UNARY(hsin, std::sin(float(a)))
EMULATOR_UNARY(hcos, std::cos(float(a)))
EMULATOR_UNARY(htanh, std::tanh(float(a)))
EMULATOR_UNARY(hfloor, std::floor(float(a)))
EMULATOR_UNARY(hceil, std::ceil(float(a)))
EMULATOR_UNARY(htrunc, std::trunc(float(a)))
EMULATOR_UNARY(hrint, std::nearbyint(float(a)))
EMULATOR_UNARY(__habs, std::fabs(float(a)))
template <class C>
inline bool __hisnan(EmulatorHalf<C> a) { return std::isnan(float(a)); }
template <class C>
inline bool isnan(EmulatorHalf<C> a) { return std::isnan(float(a)); }
template <class C>
inline EmulatorHalf<C> __hfma(EmulatorHalf<C> a, EmulatorHalf<C> b, EmulatorHalf<C> c) {
  return EmulatorHalf<C>(std::fma(float(a), float(b), float(c)));
}
template <class P>
inline P __hadd2(P a, P b) { return a + b; }
template <class P>
inline P __hmul2(P a, P b) { return a * b; }
template <class P>
inline P __hfma2(P a, P b, P c) { return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)}; }

#include "ptx.h"
#include "tensor_core.h"
