// Instructions that a warp runs together: ldmatrix, stmatrix, mma.sync and nvcuda::wmma.
//
// Fragment layouts: PTX ISA, "Warp Level Matrix Multiply-Accumulate Instructions".
#pragma once

namespace emulator {

// ---- element types of fragments ----
struct F16 { using Word = uint32_t; static constexpr int kBits = 16; static float get(uint32_t c) { return HalfCode::to_float(c); } };
struct BF16 { using Word = uint32_t; static constexpr int kBits = 16; static float get(uint32_t c) { return BrainCode::to_float(c); } };
// The tensor core reads only the first 19 bits of a tf32 operand.
struct TF32 { using Word = uint32_t; static constexpr int kBits = 32; static float get(uint32_t c) { return bits<float>(c & 0xFFFFE000u); } };
struct S8 { using Word = uint32_t; static constexpr int kBits = 8; static int get(uint32_t c) { return static_cast<int8_t>(c); } };
struct U8 { using Word = uint32_t; static constexpr int kBits = 8; static int get(uint32_t c) { return static_cast<uint8_t>(c); } };
struct E4M3 { using Word = uint32_t; static constexpr int kBits = 8; static float get(uint32_t c) { return Narrow<4, 3, true, true>::to_float(c & 255); } };
struct E5M2 { using Word = uint32_t; static constexpr int kBits = 8; static float get(uint32_t c) { return Narrow<5, 2, false, true>::to_float(c & 255); } };

template <class T>
inline auto element(uint32_t word, int position) {
  uint32_t shifted = word >> (position * T::kBits % 32);
  return T::get(T::kBits == 32 ? word : shifted & ((1ull << T::kBits) - 1));
}

// The sum of four products of bytes.
template <class TA, class TB>
inline int32_t dp4a(uint32_t a, uint32_t b, uint32_t c) {
  int32_t sum = static_cast<int32_t>(c);
  for (int i = 0; i < 4; ++i) sum += element<TA>(a, i) * element<TB>(b, i);
  return sum;
}

// m16n8kK: lane 4 * g + t holds of A the rows g and g + 8, of B the column g, of C the rows g and
// g + 8 and the columns 2 t and 2 t + 1. The words of A and B alternate between rows (A) and
// advance along K.
template <class TA, class TB, class Accumulator, int K, int NA, int NB>
inline void multiply(Accumulator (&d)[4], const uint32_t (&a)[NA], const uint32_t (&b)[NB],
                     const Accumulator (&c)[4]) {
  struct Both { uint32_t a[NA], b[NB]; } both;
  std::memcpy(both.a, a, sizeof(a));
  std::memcpy(both.b, b, sizeof(b));
  const Exchange* all = exchange(~0u, both);
  constexpr int kPacked = 32 / TA::kBits;  // elements of a word
  constexpr int kRun = 4 * kPacked;        // elements along K in one word of each of four lanes
  unsigned group = emulator_current->lane / 4, member = emulator_current->lane % 4;
  constexpr bool kRows8 = NA * kPacked * 32 == 8 * K;
  for (int part = 0; part < (kRows8 ? 2 : 4); ++part) {
    int row = group + 8 * (part / 2), column = 2 * member + part % 2;
    // The hardware adds exact products with few guard bits; a double is at least as exact.
    double sum = 0;
    for (int k = 0; k < K; ++k) {
      int lane_k = k % kRun / kPacked, word_k = k / kRun;
      int a_word = kRows8 ? word_k : 2 * word_k + row / 8;
      auto left = element<TA>(
          reinterpret_cast<const Both*>(all->slots[4 * (row % 8) + lane_k])->a[a_word], k % kPacked);
      auto right = element<TB>(
          reinterpret_cast<const Both*>(all->slots[4 * column + lane_k])->b[word_k], k % kPacked);
      sum += static_cast<double>(left) * static_cast<double>(right);
    }
    if constexpr (std::is_integral_v<Accumulator>)
      d[part] = static_cast<Accumulator>(static_cast<int64_t>(sum) + c[part]);
    else
      d[part] = static_cast<Accumulator>(sum + static_cast<double>(c[part]));
  }
}

// f16 accumulators: two values of a row in a word.
template <class TA, class TB, int K, int NA, int NB>
inline void multiply_f16(uint32_t (&d)[2], const uint32_t (&a)[NA], const uint32_t (&b)[NB],
                         const uint32_t (&c)[2]) {
  float sums[4], start[4];
  for (int i = 0; i < 4; ++i) start[i] = element<F16>(c[i / 2], i % 2);
  multiply<TA, TB, float, K>(sums, a, b, start);
  for (int i = 0; i < 2; ++i)
    d[i] = HalfCode::from_float(sums[2 * i]) |
           static_cast<uint32_t>(HalfCode::from_float(sums[2 * i + 1])) << 16;
}

// Eight-row matrices of 16-bit elements; lane i gives the address of row i % 8 of matrix i / 8.
template <int N>
inline void load_matrices(uint32_t (&result)[N], uint64_t address, bool transposed) {
  if (address % 16) emulator_error("ldmatrix: a row is not aligned to 16 bytes");
  const Exchange* all = exchange(~0u, address);
  unsigned lane = emulator_current->lane;
  for (int matrix = 0; matrix < N; ++matrix) {
    uint16_t pair[2];
    for (unsigned i = 0; i < 2; ++i) {
      unsigned row = transposed ? 2 * (lane % 4) + i : lane / 4;
      unsigned column = transposed ? lane / 4 : 2 * (lane % 4) + i;
      auto* from = reinterpret_cast<const uint16_t*>(all->get<uint64_t>(8 * matrix + row));
      pair[i] = from[column];
    }
    result[matrix] = pair[0] | static_cast<uint32_t>(pair[1]) << 16;
  }
  // Nobody overwrites the rows before everybody has read them.
  emulator_exchange(~0u, nullptr, 0);
}
template <int N>
inline void store_matrices(uint64_t address, const uint32_t (&values)[N], bool transposed) {
  if (address % 16) emulator_error("stmatrix: a row is not aligned to 16 bytes");
  const Exchange* all = exchange(~0u, address);
  unsigned lane = emulator_current->lane;
  for (int matrix = 0; matrix < N; ++matrix) {
    for (unsigned i = 0; i < 2; ++i) {
      unsigned row = transposed ? 2 * (lane % 4) + i : lane / 4;
      unsigned column = transposed ? lane / 4 : 2 * (lane % 4) + i;
      auto* to = reinterpret_cast<uint16_t*>(all->get<uint64_t>(8 * matrix + row));
      to[column] = static_cast<uint16_t>(values[matrix] >> (16 * i));
    }
  }
  emulator_exchange(~0u, nullptr, 0);
}

// A matrix in shared memory as wgmma is told about it, swizzled by 128 bytes: eight rows of 128
// bytes lie together, and the 16-byte chunks of a row are exchanged by bits 7 to 9 of the address.
struct SharedMatrix {
  uint64_t start, across, down;  // of the matrix; to the next 64 lines; to the next eight rows
  bool by_line;                  // whether the steps of the depth of one line are neighbours
  SharedMatrix(uint64_t description, bool turned) : by_line(!turned) {
    if (description >> 62 != 1) emulator_error("wgmma: only the layout swizzled by 128 bytes is emulated");
    uint64_t base = emulator_shared_offset(emulator_dynamic_shared(1));
    start = base + (((description & 0x3FFF) * 16 - base) & 0x3FFFF);
    across = (description >> 16 & 0x3FFF) * 16;
    down = (description >> 32 & 0x3FFF) * 16;
  }
  // Where an element of ``size`` bytes lies; only those of two may lie with the lines of a step side
  // by side.
  uint32_t place(unsigned line, unsigned step, unsigned size) const {
    uint64_t address = start + (by_line ? line / 8 * down + line % 8 * 128 + step * size
                                        : line / 64 * across + step / 8 * down + step % 8 * 128 + line % 64 * 2);
    return address ^ (address >> 7 & 7) << 4;
  }
  uint32_t at(unsigned line, unsigned step, unsigned size) const {
    const char* at = emulator_shared_address(place(line, step, size));
    return size == 1 ? *reinterpret_cast<const uint8_t*>(at) : *reinterpret_cast<const uint16_t*>(at);
  }
  // Says that the matrix is read, in chunks of 16 bytes.
  void begin(unsigned lines, unsigned steps, unsigned size) const {
    for (unsigned line = 0; line < lines; line += by_line ? 1 : 16 / size)
      for (unsigned step = 0; step < steps; step += by_line ? 16 / size : 1)
        emulator_group_reads(place(line, step, size));
  }
};

// wgmma m64nNkK, 32 bytes deep: warp w of the group holds rows 16 w to 16 w + 15 like an mma of N
// columns. The sums are there at once, which is one of the times at which the hardware may deliver
// them.
template <class T, int N, class Sum>
inline void multiply_group(Sum (&d)[N / 2], uint64_t left, uint64_t right, bool add, bool turned_left,
                           bool turned_right) {
  SharedMatrix a(left, turned_left), b(right, turned_right);
  constexpr unsigned kSize = T::kBits / 8;
  unsigned lane = emulator_current->lane, warp = emulator_current->warp % 4;
  if (lane == 0 && warp == 0) a.begin(64, 32 / kSize, kSize), b.begin(N, 32 / kSize, kSize);
  for (int i = 0; i < N / 2; ++i) {
    unsigned row = 16 * warp + lane / 4 + (i % 4 / 2) * 8, column = i / 4 * 8 + 2 * (lane % 4) + i % 2;
    double sum = add ? d[i] : 0.0;
    for (unsigned k = 0; k < 32 / kSize; ++k)
      sum += static_cast<double>(T::get(a.at(row, k, kSize))) * static_cast<double>(T::get(b.at(column, k, kSize)));
    d[i] = static_cast<Sum>(sum);
  }
}

// The same with the rows in registers, each warp's 16 like those of an mma of depth 16.
template <class T, int N>
inline void multiply_group(float (&d)[N / 2], const uint32_t (&left)[4], uint64_t right, bool add,
                           bool turned_right) {
  SharedMatrix b(right, turned_right);
  unsigned lane = emulator_current->lane, warp = emulator_current->warp % 4;
  if (lane == 0 && warp == 0) b.begin(N, 16, 2);
  struct Rows { uint32_t a[4]; } own;
  std::memcpy(own.a, left, sizeof(left));
  const Exchange* all = exchange(~0u, own);
  for (int i = 0; i < N / 2; ++i) {
    unsigned half = i % 4 / 2, column = i / 4 * 8 + 2 * (lane % 4) + i % 2;
    double sum = add ? d[i] : 0.0;
    for (unsigned k = 0; k < 16; ++k) {
      auto* held = reinterpret_cast<const Rows*>(all->slots[4 * (lane / 4) + k % 8 / 2])->a;
      sum += static_cast<double>(element<T>(held[k / 8 * 2 + half], k % 2)) *
             static_cast<double>(T::get(b.at(column, k, 2)));
    }
    d[i] = static_cast<float>(sum);
  }
}

}  // namespace emulator

// A fragment holds the whole matrix, in the warp's first lane. That is one of the layouts that
// CUDA leaves open.
namespace nvcuda::wmma {
struct matrix_a;
struct matrix_b;
struct accumulator;
struct row_major;
struct col_major;
enum layout_t { mem_row_major, mem_col_major };
namespace precision { struct tf32; }

template <class T> struct Stored { using type = T; };
template <> struct Stored<precision::tf32> { using type = float; };

template <class Use, int M, int N, int K, class T, class Layout = void>
struct fragment {
  using Element = typename Stored<T>::type;
  static constexpr int kRows = std::is_same_v<Use, matrix_b> ? K : M;
  static constexpr int kColumns = std::is_same_v<Use, matrix_a> ? K : N;
  Element values[kRows * kColumns];
};

inline bool leads() {
  emulator_exchange(~0u, nullptr, 0);
  return emulator_current->lane == 0;
}
template <class F, class V>
inline void fill_fragment(F& f, V value) {
  std::fill(std::begin(f.values), std::end(f.values), static_cast<typename F::Element>(value));
}
template <class F, class P>
inline void load(F& f, const P* from, unsigned stride, bool by_rows) {
  if (leads())
    for (int row = 0; row < F::kRows; ++row)
      for (int column = 0; column < F::kColumns; ++column)
        f.values[row * F::kColumns + column] =
            by_rows ? from[row * stride + column] : from[column * stride + row];
  leads();
}
template <class U, int M, int N, int K, class T, class L, class P>
inline void load_matrix_sync(fragment<U, M, N, K, T, L>& f, const P* from, unsigned stride) {
  load(f, from, stride, std::is_same_v<L, row_major>);
}
template <class F, class P>
inline void load_matrix_sync(F& f, const P* from, unsigned stride, layout_t layout) {
  load(f, from, stride, layout == mem_row_major);
}
template <class F, class P>
inline void store_matrix_sync(P* to, const F& f, unsigned stride, layout_t layout) {
  if (leads())
    for (int row = 0; row < F::kRows; ++row)
      for (int column = 0; column < F::kColumns; ++column)
        to[layout == mem_row_major ? row * stride + column : column * stride + row] =
            f.values[row * F::kColumns + column];
  leads();
}
template <int M, int N, int K, class T, class A, class LA, class B, class LB>
inline void mma_sync(fragment<accumulator, M, N, K, T>& d,
                     const fragment<matrix_a, M, N, K, A, LA>& a,
                     const fragment<matrix_b, M, N, K, B, LB>& b,
                     const fragment<accumulator, M, N, K, T>& c) {
  if (leads())
    for (int row = 0; row < M; ++row)
      for (int column = 0; column < N; ++column) {
        double sum = static_cast<double>(c.values[row * N + column]);
        for (int k = 0; k < K; ++k)
          sum += static_cast<double>(a.values[row * K + k]) * static_cast<double>(b.values[k * N + column]);
        d.values[row * N + column] = static_cast<T>(sum);
      }
}
}  // namespace nvcuda::wmma
