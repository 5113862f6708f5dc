// Number types of CUDA on the host: half, bfloat16, 8-bit floats, and short vectors.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace emulator {

template <class To, class From>
inline To bits(From value) {
  static_assert(sizeof(To) == sizeof(From));
  To result;
  std::memcpy(&result, &value, sizeof(To));
  return result;
}

// A float rounded to nearest even into fewer bits: `kExponent` exponent and `kMantissa` mantissa
// bits. With kFinite there is no infinity: what overflows saturates, as CUDA's conversions do for
// 8-bit floats (e5m2 has infinities, yet its conversion saturates too).
template <int kExponent, int kMantissa, bool kFinite, bool kSaturate>
struct Narrow {
  static constexpr int kBias = (1 << (kExponent - 1)) - 1;
  static constexpr uint32_t kSign = 1u << (kExponent + kMantissa);
  static constexpr uint32_t kNan = kSign - 1;
  static constexpr uint32_t kInfinity = ((1u << kExponent) - 1) << kMantissa;
  static constexpr uint32_t kLargest = kFinite ? kNan - 1 : kInfinity - 1;

  static uint32_t from_float(float value) {
    uint32_t sign = std::signbit(value) ? kSign : 0;
    if (std::isnan(value)) return sign | kNan;
    double magnitude = std::fabs(static_cast<double>(value));
    if (std::isinf(value)) return sign | (kSaturate ? kLargest : kInfinity);
    int exponent = 0;
    std::frexp(magnitude, &exponent);
    int least = std::max(exponent - 1, 1 - kBias) - kMantissa;
    double steps = std::nearbyint(std::ldexp(magnitude, -least));
    uint32_t code = 0;
    if (steps >= std::ldexp(1.0, kMantissa + 1)) { steps /= 2; ++least; }
    if (steps >= std::ldexp(1.0, kMantissa)) {
      int biased = least + kMantissa + kBias;
      code = (static_cast<uint32_t>(biased) << kMantissa) +
             (static_cast<uint32_t>(steps) & ((1u << kMantissa) - 1));
      if (biased >= (1 << kExponent) || code > kLargest) code = kSaturate ? kLargest : kInfinity;
    } else {
      code = static_cast<uint32_t>(steps);
    }
    return sign | code;
  }
  static float to_float(uint32_t code) {
    uint32_t magnitude = code & (kSign - 1);
    float sign = code & kSign ? -1.0f : 1.0f;
    if (kFinite ? magnitude == kNan : magnitude > kInfinity) return NAN;
    if (!kFinite && magnitude == kInfinity) return sign * INFINITY;
    int exponent = magnitude >> kMantissa;
    float mantissa = magnitude & ((1u << kMantissa) - 1);
    if (exponent == 0) return sign * std::ldexp(mantissa, 1 - kBias - kMantissa);
    return sign * std::ldexp(mantissa + (1 << kMantissa), exponent - kBias - kMantissa);
  }
};

struct HalfCode {
  static uint16_t from_float(float value) {
#ifdef __F16C__
    return __builtin_ia32_vcvtps2ph(
        (__attribute__((vector_size(16))) float){value, 0, 0, 0}, 0)[0];
#else
    return Narrow<5, 10, false, false>::from_float(value);
#endif
  }
  static float to_float(uint16_t code) {
#ifdef __F16C__
    return __builtin_ia32_vcvtph2ps(
        (__attribute__((vector_size(16))) short){static_cast<short>(code)})[0];
#else
    return Narrow<5, 10, false, false>::to_float(code);
#endif
  }
};

struct BrainCode {
  static uint16_t from_float(float value) {
    uint32_t code = bits<uint32_t>(value);
    if (std::isnan(value)) return 0x7FFF;
    return static_cast<uint16_t>((code + 0x7FFF + ((code >> 16) & 1)) >> 16);
  }
  static float to_float(uint16_t code) {
    return bits<float>(static_cast<uint32_t>(code) << 16);
  }
};

// A 16-bit float: every operation computes in float and rounds once, which is what the hardware's
// own 16-bit arithmetic gives for +, -, *, / and square roots.
template <class Code>
struct Float16 {
  uint16_t code;
  Float16() = default;
  Float16(const Float16&) = default;
  Float16(const volatile Float16& other) : code(other.code) {}
  template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
  Float16(T value) : code(Code::from_float(static_cast<float>(value))) {}
  template <class Other, class = std::enable_if_t<!std::is_same_v<Other, Code>>>
  explicit Float16(Float16<Other> value) : Float16(static_cast<float>(value)) {}
  Float16& operator=(const Float16&) = default;
  void operator=(const Float16& other) volatile { code = other.code; }
  operator float() const { return Code::to_float(code); }
  operator float() const volatile { return Code::to_float(code); }
  Float16 operator-() const { Float16 r; r.code = code ^ 0x8000; return r; }
  Float16& operator+=(Float16 other) { return *this = float(*this) + float(other); }
  Float16& operator-=(Float16 other) { return *this = float(*this) - float(other); }
  Float16& operator*=(Float16 other) { return *this = float(*this) * float(other); }
  Float16& operator/=(Float16 other) { return *this = float(*this) / float(other); }
};

#define EMULATOR_ARITHMETIC(OP)                                                      \
  template <class C>                                                                 \
  inline Float16<C> operator OP(Float16<C> a, Float16<C> b) {                        \
    return Float16<C>(float(a) OP float(b));                                         \
  }
EMULATOR_ARITHMETIC(+)
EMULATOR_ARITHMETIC(-)
EMULATOR_ARITHMETIC(*)
EMULATOR_ARITHMETIC(/)
#undef EMULATOR_ARITHMETIC
#define EMULATOR_COMPARISON(OP)                                                      \
  template <class C>                                                                 \
  inline bool operator OP(Float16<C> a, Float16<C> b) {                              \
    return float(a) OP float(b);                                                     \
  }
EMULATOR_COMPARISON(<)
EMULATOR_COMPARISON(>)
EMULATOR_COMPARISON(<=)
EMULATOR_COMPARISON(>=)
EMULATOR_COMPARISON(==)
EMULATOR_COMPARISON(!=)
#undef EMULATOR_COMPARISON

template <class Code>
struct Float8 {
  uint8_t __x;
  Float8() = default;
  template <class T, class = std::enable_if_t<std::is_convertible_v<T, float>>>
  explicit Float8(T value) : __x(Code::from_float(static_cast<float>(value))) {}
  operator float() const { return Code::to_float(__x); }
};

// Aligned as CUDA's vectors are, so that a misaligned access traps.
template <class T, int N>
struct Components;
template <class T>
struct Components<T, 1> { T x; };
template <class T>
struct Components<T, 2> { T x, y; };
template <class T>
struct Components<T, 3> { T x, y, z; };
template <class T>
struct Components<T, 4> { T x, y, z, w; };

}  // namespace emulator

using half = emulator::Float16<emulator::HalfCode>;
using __half = half;
using nv_bfloat16 = emulator::Float16<emulator::BrainCode>;
using __nv_bfloat16 = nv_bfloat16;
using __nv_fp8_e4m3 = emulator::Float8<emulator::Narrow<4, 3, true, true>>;
using __nv_fp8_e5m2 = emulator::Float8<emulator::Narrow<5, 2, false, true>>;

#define EMULATOR_VECTOR(T, NAME, N, ALIGN) \
  struct alignas(ALIGN) NAME##N : emulator::Components<T, N> {};
#define EMULATOR_VECTORS(T, NAME)                                                             \
  EMULATOR_VECTOR(T, NAME, 1, alignof(T))                                                     \
  EMULATOR_VECTOR(T, NAME, 2, 2 * sizeof(T))                                                  \
  EMULATOR_VECTOR(T, NAME, 3, alignof(T))                                                     \
  EMULATOR_VECTOR(T, NAME, 4, (4 * sizeof(T) > 16 ? 16 : 4 * sizeof(T)))                      \
  inline NAME##1 make_##NAME##1(T x) { return {{x}}; }                                        \
  inline NAME##2 make_##NAME##2(T x, T y) { return {{x, y}}; }                                \
  inline NAME##3 make_##NAME##3(T x, T y, T z) { return {{x, y, z}}; }                        \
  inline NAME##4 make_##NAME##4(T x, T y, T z, T w) { return {{x, y, z, w}}; }
EMULATOR_VECTORS(signed char, char)
EMULATOR_VECTORS(unsigned char, uchar)
EMULATOR_VECTORS(short, short)
EMULATOR_VECTORS(unsigned short, ushort)
EMULATOR_VECTORS(int, int)
EMULATOR_VECTORS(unsigned int, uint)
EMULATOR_VECTORS(long, long)
EMULATOR_VECTORS(unsigned long, ulong)
EMULATOR_VECTORS(long long, longlong)
EMULATOR_VECTORS(unsigned long long, ulonglong)
EMULATOR_VECTORS(float, float)
EMULATOR_VECTORS(double, double)

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
};

// Pairs of 16-bit floats.
#define EMULATOR_PAIR(T, NAME)                                                      \
  struct alignas(4) NAME {                                                          \
    T x, y;                                                                         \
    NAME() = default;                                                               \
    NAME(T a, T b) : x(a), y(b) {}                                                  \
    explicit NAME(T a) : x(a), y(a) {}                                              \
  };                                                                                \
  inline NAME operator+(NAME a, NAME b) { return {a.x + b.x, a.y + b.y}; }          \
  inline NAME operator-(NAME a, NAME b) { return {a.x - b.x, a.y - b.y}; }          \
  inline NAME operator*(NAME a, NAME b) { return {a.x * b.x, a.y * b.y}; }          \
  inline NAME operator/(NAME a, NAME b) { return {a.x / b.x, a.y / b.y}; }
EMULATOR_PAIR(half, __half2)
EMULATOR_PAIR(nv_bfloat16, __nv_bfloat162)
#undef EMULATOR_PAIR
using half2 = __half2;
using nv_bfloat162 = __nv_bfloat162;
inline half2 make_half2(half x, half y) { return {x, y}; }
