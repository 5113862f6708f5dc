// What translated PTX calls.
#pragma once

namespace emulator {
template <class T, int N>
struct alignas(sizeof(T) * N) Aligned { T at[N]; };
}  // namespace emulator

// A value in a register of another type of the same size, or a number as it is.
template <class To, class From>
inline To ptx_bits(From value) {
  if constexpr (std::is_pointer_v<From>) return static_cast<To>(reinterpret_cast<uint64_t>(value));
  else if constexpr (std::is_same_v<To, From>) return value;
  else if constexpr (sizeof(To) == sizeof(From)) return emulator::bits<To>(value);
  else return static_cast<To>(value);
}
template <class To, class From>
inline void ptx_store(To& target, From value) { target = ptx_bits<To>(value); }
template <class To, class From>
inline void ptx_pack(To& target, From low, From high) {
  static_assert(sizeof(To) == 2 * sizeof(From));
  From both[2] = {low, high};
  std::memcpy(&target, both, sizeof target);
}
template <class From, class To>
inline void ptx_unpack(From source, To& low, To& high) {
  static_assert(sizeof(From) == 2 * sizeof(To));
  std::memcpy(&low, &source, sizeof low);
  std::memcpy(&high, reinterpret_cast<const char*>(&source) + sizeof low, sizeof high);
}
// To the nearest tf32, ties away from zero (cvt.rna).
inline uint32_t ptx_tf32(float value) {
  uint32_t code = emulator::bits<uint32_t>(value);
  return std::isnan(value) ? code : (code + 0x1000) & 0xFFFFE000u;
}
inline float ptx_ex2(float v) { return std::exp2(v); }
inline float ptx_div(float a, float b) { return a / b; }
inline float ptx_lg2(float v) { return std::log2(v); }
inline float ptx_rcp(float v) { return 1.0f / v; }
inline float ptx_tanh(float v) { return std::tanh(v); }
inline float ptx_sqrt(float v) { return std::sqrt(v); }
inline float ptx_rsqrt(float v) { return 1.0f / std::sqrt(v); }
inline float ptx_fma(float a, float b, float c) { return std::fma(a, b, c); }
inline float ptx_mul(float a, float b) { return a * b; }
inline float ptx_max(float a, float b) { return std::fmax(a, b); }
inline float ptx_min(float a, float b) { return std::fmin(a, b); }
