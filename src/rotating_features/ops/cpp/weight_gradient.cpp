// The gradient of a convolution's weights.
//
// It is a product of two matrices: every pixel of the narrow map, the one that a stride makes smaller,
// times the pixels of the wide one in its window. Blocks of it are held in registers while some rows of
// pixels go by, of a few images at a time, so that these stay in a core's own cache.
//
// Maps are (images, height, width, channels), with channels by the 32.

#include <omp.h>

#include <algorithm>
#include <vector>

#include "floats.h"

namespace {

constexpr int ROWS = 8, COLUMNS = 2, BLOCK = COLUMNS * WIDTH;  // of the product: narrow by wide channels
constexpr int PIXELS = 256;                                    // taken at a time, if an image has fewer

struct Map {
  int64_t height, width, channels;
};

struct Convolution {
  int64_t images;
  Map narrow, wide;
  int64_t kernel[2], stride[2], padding[2];
};

// Which block of the product, and for which of the weights.
struct Place {
  int64_t row, column, y, x;
};

// The first row of either map: where it begins, and how far it is to the next pixel and the next row.
// Of the narrow pixels these are the `steps` that meet a wide one.
template <class Number>
struct Rows {
  const Number *narrow, *wide;
  int64_t steps, narrow_step, wide_step, narrow_row, wide_row;
};

}  // namespace

#if !defined(__AVX512F__) || (defined(PAIRS) && (!defined(__AVX512BF16__) || defined(__AMX_BF16__)))
#define NOT_HERE  // too few registers, no such instruction, or AMX, which PyTorch's own uses

#elif defined(PAIRS)
// The processor multiplies two pairs of bfloat16 and adds both products to a sum in float. So neighbours
// in a row of the narrow map are packed into pairs, and with them, for each column of the weights, the
// pixels of the wide map that they meet.

namespace {

typedef uint32_t Number;  // one channel of two pixels, the first in the lower half
typedef Bits Numbers;     // of 16 channels

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
void pack(const Row& row, int64_t first, int64_t step, int64_t count, Number* to, int64_t apart) {
  for (int64_t i = 0; i < count; i += 2, to += C, first += 2 * step) {
    const T* left = row.at(first);
    const T* right = i + 1 < count ? row.at(first + step) : row.outside;
    for (int64_t channel = 0; channel < row.map.channels; channel += WIDTH) {
      Number pairs[WIDTH];
      write(pairs, __builtin_convertvector(read<Halves>(left + channel), Numbers) |
                       __builtin_convertvector(read<Halves>(right + channel), Numbers) << 16);
      constexpr int part = std::min(C, WIDTH);
      for (int k = 0; k < WIDTH; k += part)
        std::memcpy(to + (channel + k) / C * apart + (channel + k) % C, pairs + k, part * sizeof(Number));
    }
  }
}

class Pixels {
  const Convolution& conv;
  const T *narrow, *wide;
  const int64_t steps, columns;           // pairs in a row; blocks of wide channels
  const int64_t row_size, column_size;    // of all pairs for a block's rows, and for its columns
  std::vector<T> outside;
  std::vector<Number> narrow_pairs;
  std::vector<Numbers> wide_pairs;        // aligned to lines of the cache

 public:
  Pixels(const Convolution& conv, int64_t at_once, const T* narrow, const T* wide)
      : conv(conv), narrow(narrow), wide(wide),
        steps((conv.narrow.width + 1) / 2), columns(conv.wide.channels / BLOCK),
        row_size(at_once * conv.narrow.height * steps * ROWS),
        column_size(at_once * conv.wide.height * steps * BLOCK),
        outside(std::max(conv.narrow.channels, conv.wide.channels)),
        narrow_pairs(conv.narrow.channels / ROWS * row_size),
        wide_pairs(conv.kernel[1] * columns * column_size / WIDTH) {}

  void take(int64_t first, int64_t images) {
    const Map n = conv.narrow, w = conv.wide;
    for (int64_t i = 0; i < images * n.height; i++) {
      const T* from = narrow + (first * n.height + i) * n.width * n.channels;
      Number* to = narrow_pairs.data() + i * steps * ROWS;
      pack<ROWS>(Row{from, outside.data(), n}, 0, 1, n.width, to, row_size);
    }
    for (int64_t i = 0; i < images * w.height; i++)
      for (int64_t x = 0; x < conv.kernel[1]; x++) {
        const T* from = wide + (first * w.height + i) * w.width * w.channels;
        Number* to = columns_at(x * columns) + i * steps * BLOCK;
        const int64_t start = x - conv.padding[1];
        pack<BLOCK>(Row{from, outside.data(), w}, start, conv.stride[1], n.width, to, column_size);
      }
  }

  Rows<Number> rows(Place at) {
    const Number* of_narrow = narrow_pairs.data() + at.row * row_size;
    const Number* of_wide = columns_at(at.x * columns + at.column);
    return {of_narrow, of_wide, steps, ROWS, BLOCK, steps * ROWS, steps * BLOCK};
  }

 private:
  Number* columns_at(int64_t block) {
    return reinterpret_cast<Number*>(wide_pairs.data()) + block * column_size;
  }
};

Floats add_product(Floats sum, Number a, Numbers b) {
  return (Floats)_mm512_dpbf16_ps((__m512)sum, (__m512bh)_mm512_set1_epi32((int)a), (__m512bh)b);
}

}  // namespace

#else

namespace {

typedef T Number;
typedef Floats Numbers;

class Pixels {
  const Convolution& conv;
  const T *narrow, *wide;
  int64_t first = 0;

 public:
  Pixels(const Convolution& conv, int64_t, const T* narrow, const T* wide)
      : conv(conv), narrow(narrow), wide(wide) {}

  void take(int64_t first, int64_t) { this->first = first; }

  Rows<Number> rows(Place at) {
    const Map n = conv.narrow, w = conv.wide;
    const int64_t stride = conv.stride[1], start = at.x - conv.padding[1];
    int64_t begin = 0, end = n.width;
    while (begin < end && begin * stride + start < 0) begin++;
    while (begin < end && (end - 1) * stride + start >= w.width) end--;
    const int64_t of_narrow = first * n.height * n.width + begin;
    const int64_t of_wide = first * w.height * w.width + begin * stride + start;
    return {narrow + of_narrow * n.channels + at.row * ROWS,
            wide + of_wide * w.channels + at.column * BLOCK,
            end - begin, n.channels, stride * w.channels,
            n.width * n.channels, w.width * w.channels};
  }
};

Floats add_product(Floats sum, Number a, Numbers b) { return sum + a * b; }

}  // namespace

#endif

extern "C" {
#ifdef NOT_HERE

extern const bool suits_processor = false;

#else

extern const bool suits_processor = true;

// Sums of each thread: (threads, narrow channels, kernel height, kernel width, wide channels), zero
// before.
void weight_gradient(Convolution conv, int threads, const T* narrow, const T* wide, float* sums) {
  const Map n = conv.narrow, w = conv.wide;
  const int64_t at_once = std::max<int64_t>(1, PIXELS / (n.height * n.width));
  const int64_t groups = (conv.images + at_once - 1) / at_once;
  const int64_t taps = conv.kernel[0] * conv.kernel[1];

  const auto add_block = [&](Pixels& pixels, Place at, int64_t images,
                             float* to) __attribute__((always_inline)) {  // a tenth faster
    Floats sum[ROWS][COLUMNS] = {};
    const Rows<Number> rows = pixels.rows(at);
    for (int64_t image = 0; image < images; image++)
      for (int64_t i = 0; i < n.height; i++) {
        const int64_t j = i * conv.stride[0] + at.y - conv.padding[0];
        if (j < 0 || j >= w.height) continue;
        const Number* a = rows.narrow + (image * n.height + i) * rows.narrow_row;
        const Number* b = rows.wide + (image * w.height + j) * rows.wide_row;
        for (int64_t left = rows.steps; left > 0; left--, a += rows.narrow_step, b += rows.wide_step) {
          Numbers column[COLUMNS];
          for (int c = 0; c < COLUMNS; c++) column[c] = read<Numbers>(b + c * WIDTH);
          for (int r = 0; r < ROWS; r++)
            for (int c = 0; c < COLUMNS; c++) sum[r][c] = add_product(sum[r][c], a[r], column[c]);
        }
      }
    to += (at.row * ROWS * taps + at.y * conv.kernel[1] + at.x) * w.channels + at.column * BLOCK;
    for (int r = 0; r < ROWS; r++, to += taps * w.channels)
      for (int c = 0; c < COLUMNS; c++) add(to + c * WIDTH, sum[r][c]);
  };

#pragma omp parallel num_threads(threads)
  {
    Pixels pixels(conv, at_once, narrow, wide);
    float* own = sums + omp_get_thread_num() * n.channels * taps * w.channels;
#pragma omp for schedule(static)
    for (int64_t group = 0; group < groups; group++) {
      const int64_t first = group * at_once, images = std::min(at_once, conv.images - first);
      pixels.take(first, images);
      for (int64_t x = 0; x < conv.kernel[1]; x++)
        for (int64_t column = 0; column < w.channels / BLOCK; column++)
          for (int64_t y = 0; y < conv.kernel[0]; y++)
            for (int64_t row = 0; row < n.channels / ROWS; row++)
              add_block(pixels, Place{row, column, y, x}, images, own);
    }
  }
}
#endif
}
