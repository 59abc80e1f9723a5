// The gradient of a convolution's weights in bfloat16.
//
// It is a product of two matrices: every pixel of the narrow map, the one that a stride makes smaller,
// times the pixels of the wide one in its window. The processor multiplies two pairs of numbers and adds
// both products to a sum in float, so neighbours in a row of the narrow map are packed into pairs, and
// with them, for each column of the weights, the pixels of the wide map that they meet (pack). Of a few
// images at a time, that stays in a core's own cache while it is multiplied (multiply).
//
// Maps are (images, height, width, channels), with channels by the 32.

#include <omp.h>

#include <algorithm>
#include <vector>

#include "floats.h"

#if defined(__AVX512BF16__) && !defined(__AMX_BF16__)  // with AMX, PyTorch's own is faster

namespace {

constexpr int ROWS = 8, COLUMNS = 2;  // of the block of the product that is held in registers
constexpr int BLOCK = COLUMNS * WIDTH, STEPS = 128;  // channels; pairs of pixels packed at a time

typedef uint32_t Pair;  // one channel of two pixels, the first in the lower half
typedef Bits Pairs;     // of 16 channels

struct Map {
  int64_t height, width, channels;
};

struct Convolution {
  int64_t images;
  Map narrow, wide;
  int64_t kernel[2], stride[2], padding[2];
};

struct Row {
  const T *pixels, *outside;
  Map map;
  const T* at(int64_t column) const {
    return 0 <= column && column < map.width ? pixels + column * map.channels : outside;
  }
};

// Pairs of `count` pixels, of columns `first`, `first` + `step` and so on: (pairs, C) for each C
// channels, which lie `apart` from each other.
template <int C>
void pack(const Row& row, int64_t first, int64_t step, int64_t count, Pair* to, int64_t apart) {
  for (int64_t i = 0; i < count; i += 2, to += C, first += 2 * step) {
    const T* left = row.at(first);
    const T* right = i + 1 < count ? row.at(first + step) : row.outside;
    for (int64_t channel = 0; channel < row.map.channels; channel += WIDTH) {
      Pair pairs[WIDTH];
      write(pairs, __builtin_convertvector(read<Halves>(left + channel), Pairs) |
                       __builtin_convertvector(read<Halves>(right + channel), Pairs) << 16);
      constexpr int part = std::min(C, WIDTH);
      for (int k = 0; k < WIDTH; k += part)
        std::memcpy(to + (channel + k) / C * apart + (channel + k) % C, pairs + k, part * sizeof(Pair));
    }
  }
}

// Adds the products of pairs (steps, ROWS) and (steps, BLOCK).
void multiply(const Pair* a, const Pair* b, int64_t steps, Floats (&sum)[ROWS][COLUMNS]) {
  for (; steps > 0; steps--, a += ROWS, b += BLOCK) {
    __m512bh column[COLUMNS];
    for (int j = 0; j < COLUMNS; j++) column[j] = (__m512bh)read<Pairs>(b + j * WIDTH);
    for (int i = 0; i < ROWS; i++) {
      const __m512bh row = (__m512bh)_mm512_set1_epi32((int)a[i]);
      for (int j = 0; j < COLUMNS; j++)
        sum[i][j] = (Floats)_mm512_dpbf16_ps((__m512)sum[i][j], row, column[j]);
    }
  }
}

}  // namespace

extern "C" {

bool suits_processor = true;

// Sums of each thread: (threads, narrow channels, kernel height, kernel width, wide channels), zero
// before.
void weight_gradient(Convolution conv, int threads, const T* narrow, const T* wide, float* sums) {
  const Map n = conv.narrow, w = conv.wide;
  const int64_t steps = (n.width + 1) / 2;
  const int64_t at_once = std::max<int64_t>(1, STEPS / (n.height * steps));
  const int64_t groups = (conv.images + at_once - 1) / at_once;
  const int64_t rows = n.channels / ROWS, columns = w.channels / BLOCK;
  const int64_t row = at_once * n.height * steps * ROWS, column = at_once * w.height * steps * BLOCK;
  const int64_t taps = conv.kernel[0] * conv.kernel[1];
#pragma omp parallel num_threads(threads)
  {
    std::vector<Pair> a(rows * row);
    std::vector<Pairs> aligned(conv.kernel[1] * columns * column / WIDTH);  // to lines of the cache
    Pair* b = reinterpret_cast<Pair*>(aligned.data());
    const std::vector<T> outside(std::max(n.channels, w.channels));
    float* own = sums + omp_get_thread_num() * n.channels * taps * w.channels;
#pragma omp for schedule(static)
    for (int64_t group = 0; group < groups; group++) {
      const int64_t images = std::min(at_once, conv.images - group * at_once);
      for (int64_t i = 0; i < images * n.height; i++) {
        const int64_t at = group * at_once * n.height + i;
        const Row from{narrow + at * n.width * n.channels, outside.data(), n};
        pack<ROWS>(from, 0, 1, n.width, a.data() + i * steps * ROWS, row);
      }
      for (int64_t i = 0; i < images * w.height; i++) {
        const int64_t at = group * at_once * w.height + i;
        const Row from{wide + at * w.width * w.channels, outside.data(), w};
        for (int64_t x = 0; x < conv.kernel[1]; x++)
          pack<BLOCK>(from, x - conv.padding[1], conv.stride[1], n.width,
                      b + x * columns * column + i * steps * BLOCK, column);
      }
      for (int64_t x = 0; x < conv.kernel[1]; x++)
        for (int64_t c = 0; c < columns; c++)
          for (int64_t y = 0; y < conv.kernel[0]; y++)
            for (int64_t r = 0; r < rows; r++) {
              Floats sum[ROWS][COLUMNS] = {};
              for (int64_t image = 0; image < images; image++)
                for (int64_t i = 0; i < n.height; i++) {
                  const int64_t j = i * conv.stride[0] + y - conv.padding[0];
                  if (j < 0 || j >= w.height) continue;
                  multiply(a.data() + r * row + (image * n.height + i) * steps * ROWS,
                           b + (x * columns + c) * column + (image * w.height + j) * steps * BLOCK,
                           steps, sum);
                }
              float* to = own + (r * ROWS * taps + y * conv.kernel[1] + x) * w.channels + c * BLOCK;
              for (int i = 0; i < ROWS; i++, to += taps * w.channels)
                for (int j = 0; j < COLUMNS; j++) add(to + j * WIDTH, sum[i][j]);
            }
    }
  }
}
}

#else
extern "C" bool suits_processor = false;
#endif
