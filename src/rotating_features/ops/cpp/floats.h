// Sixteen numbers at once, as float whatever they are in memory.

#pragma once

#ifdef __AVX512BF16__
#include <immintrin.h>
#endif
#include <cmath>
#include <cstdint>
#include <cstring>

namespace {

constexpr int WIDTH = 16;
typedef float Floats __attribute__((vector_size(4 * WIDTH)));
typedef double Doubles __attribute__((vector_size(8 * WIDTH)));
typedef int32_t Mask __attribute__((vector_size(4 * WIDTH)));
typedef uint32_t Bits __attribute__((vector_size(4 * WIDTH)));
typedef uint16_t Halves __attribute__((vector_size(2 * WIDTH)));

struct bfloat16 {
  uint16_t upper;  // half of a float
};

template <class Vector, class Element>
Vector read(const Element* from) {
  Vector v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

template <class Vector, class Element>
void write(Element* to, Vector v) {
  std::memcpy(to, &v, sizeof v);
}

Floats load(const float* from) { return read<Floats>(from); }

Floats load(const bfloat16* from) {
  return (Floats)(__builtin_convertvector(read<Halves>(from), Bits) << 16);
}

void store(float* to, Floats v) { write(to, v); }

void store(bfloat16* to, Floats v) {
#ifdef __AVX512BF16__
  write(to, _mm512_cvtneps_pbh((__m512)v));
  return;
#endif
  Bits bits = (Bits)v;
  Bits rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;  // to the nearest, ties to even
  Bits quiet = (bits >> 16) | 0x40;                           // nan stays nan
  Mask is_nan = v != v;
  write(to, __builtin_convertvector((rounded & ~(Bits)is_nan) | (quiet & (Bits)is_nan), Halves));
}

void add(float* to, Floats v) { write(to, read<Floats>(to) + v); }

void add(double* to, Floats v) {
  write(to, read<Doubles>(to) + __builtin_convertvector(v, Doubles));
}

Floats keep(Mask where, Floats v) { return (Floats)((Mask)v & where); }

Floats square_root(Floats v) {
  for (int i = 0; i < WIDTH; i++) v[i] = std::sqrt(v[i]);
  return v;
}

}  // namespace
